"""State, progress, event files and costs of a training."""

import math
import random
import struct
import sys
from pathlib import Path

import pytest
import torch
from made_records import MACHINE, data_loss, progress_line as records_line
from run_folders import json_lines

from pipeline.core.errors import UserError
from pipeline.core.json_csv import read_json
from pipeline.core.layout import EVENTS, PROGRESS_FILE
from pipeline.core.records.record import read_lines_as
from pipeline.core.records.training import (
    AnyProgress,
    BestLoss,
    MonitorLine,
    ProgressLine,
    SampleLine,
    TrainingLoss,
    ValidationLine,
)
from pipeline.training import progress
from pipeline.training.cost import CostCounter
from pipeline.training.job import train_run
from pipeline.training.progress import EventFile, JsonLines, Progress, clock, progress_line
from pipeline.training.specification import run_key
from pipeline.training.state import Sums, TrainingState, perplexity


def test_sums_become_means_per_token_and_unsmoothed_perplexity():
    sums = Sums(loss=30.0, nll=20.0, tokens=10)
    sums.add(Sums(loss=10.0, nll=10.0, tokens=10))
    assert sums.per_token() == TrainingLoss(loss_per_token=2.0, nll_per_token=1.5, perplexity=math.exp(1.5))
    assert perplexity(1e6) == math.inf


def test_record_validation_keeps_the_best_and_resets_the_sums():
    state = TrainingState(step=4, since_validation=Sums(2.0, 1.0, 1))
    assert state.record_validation(data_loss(0.5), data_loss(1.0))
    state.step = 8
    assert not state.record_validation(data_loss(0.25), data_loss(3.0))
    assert state.best_dev == BestLoss(step=4, **dict(data_loss(1.0)))
    assert state.fit == data_loss(0.25) and state.dev == data_loss(3.0)
    assert state.since_validation == Sums() and state.train is None


def test_rewinding_forgets_later_and_half_written_lines(tmp_path):
    lines = JsonLines(tmp_path / "lines")
    for step in range(5):
        lines.append(SampleLine(step=step, source="größer", reference="", hypothesis=""))
    with open(lines.path, "ab") as handle:
        handle.write('{"step": 1, "source": "größer'.encode()[: -random.randrange(1, 6)])
    lines.rewind(2, validate_every=1)
    assert [line["step"] for line in json_lines(lines.path)] == [0, 1, 2]


def test_rewind_refuses_a_torn_middle_line_and_keeps_the_file(tmp_path):
    lines = JsonLines(tmp_path / "lines")
    lines.append(MonitorLine(step=1, values={}))
    torn = lines.path.read_bytes() + b'{"step": 1, "te\n' + lines.path.read_bytes()
    lines.path.write_bytes(torn)
    with pytest.raises(UserError, match=r"lines: line 2: not a JSON record"):
        lines.rewind(2, validate_every=1)
    assert lines.path.read_bytes() == torn


def test_first_last_and_every_25th_of_the_steps_are_reported(tmp_path, caplog):
    caplog.set_level("INFO")
    told = Progress("weighted/A seed 1", tmp_path, first=0, end=1010)
    for step in range(1, 1011):
        told.count(step, Sums(2.0, 1.0, 1), 1e-3, 0.5, waited_s=0.0)
    records, steps = json_lines(tmp_path / PROGRESS_FILE), [1, *range(40, 1001, 40), 1010]
    assert [record["step"] for record in records] == steps
    assert records[1]["loss_per_token"] == 2.0
    prefixes = [message.split("  loss")[0] for message in caplog.messages]
    assert prefixes == [f"weighted/A seed 1  step {step}/1010" for step in steps]


def test_a_line_every_few_seconds_has_the_numbers_of_the_file(tmp_path, caplog, monkeypatch):
    caplog.set_level("INFO")
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
    told = Progress("weighted/A seed 1", tmp_path, first=390, end=600)
    told.count(400, Sums(2.13 * 7, math.log(8.4) * 7, 7), 1.1e-3, 0.5, waited_s=0.0)
    (record,) = read_lines_as(AnyProgress, tmp_path / PROGRESS_FILE)
    assert caplog.messages == [progress_line("weighted/A seed 1", record)]
    assert "step 400/600  loss 2.130  ppl 8.40  lr 1.10e-03" in caplog.messages[0]


def test_a_line_averages_finite_steps_and_counts_others(tmp_path, caplog):
    """At step 1 and every fourth; a skipped step has no gradient norm, and perhaps a finite loss."""
    caplog.set_level("INFO")
    told, losses = Progress("toy", tmp_path, first=0, end=100), [5.0, 1.0, math.nan, 3.0, *[math.inf] * 3, 2.0]
    for step, loss in enumerate(losses, start=1):
        norm = step / 4 if step in (1, 2, 4) else None
        told.count(step, Sums(7 * loss, 7 * loss, 7), 1e-3, norm, waited_s=0.0)
    lines = json_lines(tmp_path / PROGRESS_FILE)
    fields = ("step", "loss_per_token", "perplexity", "gradient_norm", "skipped")
    assert [tuple(line[field] for field in fields) for line in lines] == [
        (1, 5.0, math.exp(5), 0.25, 0),
        (4, 2.0, math.exp(2), 1.0, 1),
        (8, None, None, None, 4),
    ]
    assert all(line["tokens_per_s"] > 0 for line in lines)
    assert "step 4/100  loss 2.000  ppl 7.39  1 skipped  lr 1.00e-03" in caplog.messages[1]
    assert "step 8/100  4 skipped  lr 1.00e-03" in caplog.messages[2]


def test_event_files_leave_out_what_skipped_steps_lack():
    line = records_line(4, loss_per_token=None, nll_per_token=None, perplexity=None, gradient_norm=None, skipped=4)
    found = progress.scalars(line)
    assert found.keys() == {f"updates/{name}" for name in ("lr", "tokens_per_s", "loader_share", "skipped")}


def test_speed_covers_the_last_interval_and_time_left_all_steps(tmp_path, caplog, monkeypatch):
    caplog.set_level("INFO")
    now = iter([100.0, 120.0, 140.0, 150.0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    told = Progress("toy", tmp_path, first=30, end=60)
    told.count(31, Sums(1.0, 1.0, 600), 1e-3, 0.5, waited_s=0.01)
    monkeypatch.setattr(progress, "LINE_EVERY_S", 25.0)
    told.count(33, Sums(1.0, 1.0, 200), 1e-3, 0.5, waited_s=4.0)
    told.count(35, Sums(1.0, 1.0, 100), 1e-3, 0.5, waited_s=15.01)
    first, second = read_lines_as(AnyProgress, tmp_path / PROGRESS_FILE)
    assert (first.tokens_per_s, first.loader_share, first.seconds_left) == (30.0, 0.01 / 20, 20 * 29)
    assert (second.tokens_per_s, second.loader_share, second.seconds_left) == (10.0, 0.5, 10 * 25)
    assert "tok/s  waited 0 %  " in caplog.messages[0] and "tok/s  waited 50 %  " in caplog.messages[1]


@pytest.mark.parametrize(("seconds", "shown"), [(0.4, "0:00"), (32, "0:32"), (725, "12:05"), (11049, "3:04:09")])
def test_time_left_reads_like_a_clock(seconds, shown):
    assert clock(seconds) == shown


def test_monitored_values_are_logged_200_times_and_at_the_end(tmp_path):
    progress = Progress("toy", tmp_path, 0, 1001)
    progress.monitor(5, dict)
    assert not (tmp_path / PROGRESS_FILE).exists(), "a model without monitors leaves the log alone"
    for step in range(1, 1002):
        progress.monitor(step, lambda step=step: {"kappa": [float(step)]})
    lines = json_lines(tmp_path / PROGRESS_FILE)
    assert {line["event"] for line in lines} == {"monitor"}
    assert [line["step"] for line in lines] == [*range(5, 1001, 5), 1001]
    assert all(line["values"] == {"kappa": [line["step"]]} for line in lines)


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


def test_missing_tensorboard_writer_names_its_install(train, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(UserError, match=r"pip install -e '.\[tensorboard\]'") as said:
        train(tensorboard=True, **BRIEF)
    assert "\n" not in str(said.value)


def test_the_cost_of_all_starts_is_added_up(tmp_path):
    for first, last in ((0, 5), (3, 9)):
        cost = CostCounter(tmp_path, torch.device("cpu"), MACHINE, first)
        for _ in range(first, last):
            cost.count(tokens=100, flops=1e6)
        cost.write(last - 1)
        cost.write(last)
    written = read_json(tmp_path / "cost.json")
    assert [start["steps"] for start in written["starts"]] == [5, 6]
    total = written["total"]
    assert (total["starts"], total["steps"], total["tokens"], total["flops"]) == (2, 11, 1100, 1.1e7)
    assert total["gpu_hours"] == 0 and total["peak_memory_gib"] > 0.01
    assert {"started", "stopped", "node", "device", "seconds"} <= written["starts"][0].keys()


def test_gpu_hours_count_every_gpu(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda _: 3 << 30)
    cost = CostCounter(tmp_path, torch.device("cuda"), MACHINE.model_copy(update={"processes": 8}), 0)
    cost.began -= 1800
    entry = cost.entry(1)
    assert entry.gpu_hours == pytest.approx(4, rel=1e-3)
    assert entry.peak_memory_gib == 3
