"""Event files for TensorBoard have the numbers of progress.jsonl, and change nothing of a training."""

import struct
import sys
from pathlib import Path

import pytest

from pipeline.core.errors import UserError
from pipeline.core.layout import EVENTS, PROGRESS_FILE
from pipeline.core.records.record import read_lines_as
from pipeline.core.records.training import AnyProgress, MonitorLine, ProgressLine, ValidationLine
from pipeline.training.job import train_run
from pipeline.training.progress import EventFile
from pipeline.training.specification import run_key

BRIEF = {"max_steps": 6, "validate_every": 3, "checkpoint_every": 3}


def events(folder: Path) -> list:
    """Return the records of all event files, by the format of TFRecords: length, check sum, bytes, check sum."""
    event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2", reason="needs the extra `tensorboard`")
    found = []
    for path in sorted((folder / EVENTS).iterdir()):
        content, at = path.read_bytes(), 0
        while at < len(content):
            (length,) = struct.unpack_from("<Q", content, at)
            found.append(event_pb2.Event.FromString(content[at + 12 : at + 12 + length]))
            at += 16 + length
    return found


def test_events_have_every_number_of_the_progress(new_run):
    folder = new_run(architecture="weighted_transformer", tensorboard=True, **BRIEF)
    pytest.importorskip("tensorboardX", reason="needs the extra `tensorboard`")
    train_run(folder, "cpu", 1)
    said = {(value.tag, event.step): value.simple_value for event in events(folder) for value in event.summary.value}
    lines = list(read_lines_as(AnyProgress, folder / PROGRESS_FILE))
    assert {type(line) for line in lines} == {ProgressLine, ValidationLine, MonitorLine}
    for line in lines:
        match line:
            case ProgressLine():
                expected = {f"updates/{name}": getattr(line, name) for name in ("nll_per_token", "lr", "gradient_norm")}
            case ValidationLine():
                expected = {"dev/nll_per_token": line.dev.nll_per_token, "fit/nll_per_token": line.fit.nll_per_token}
            case MonitorLine():
                expected = {f"{name}/0": values[0] for name, values in line.values.items()}
        assert {tag: said[tag, line.step] for tag in expected} == pytest.approx(expected, rel=1e-6)


def test_event_file_logs_the_start_step_of_each_start(tmp_path):
    pytest.importorskip("tensorboardX", reason="needs the extra `tensorboard`")
    for step, loss in ((0, 3.0), (4, 2.0)):
        EventFile(tmp_path, step).add(MonitorLine(step=step + 1, values={"loss": [loss]}))
    assert [event.step for event in events(tmp_path) if event.HasField("session_log")] == [0, 5]


def test_event_files_do_not_change_the_run_identity(new_run):
    assert run_key(new_run("with", tensorboard=True)) == run_key(new_run("without"))


def test_missing_tensorboard_writer_names_its_install(new_run, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(UserError, match=r"pip install '.\[tensorboard\]'") as said:
        train_run(new_run(tensorboard=True, **BRIEF), "cpu", 1)
    assert "\n" not in str(said.value)
