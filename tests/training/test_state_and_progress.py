import json
import math
import random

import pytest
from made_records import UPDATES, data_loss

from pipeline.core.errors import UserError
from pipeline.core.records.record import read_lines_as
from pipeline.core.records.training import AnyProgress, BestLoss, MonitorLine, SampleLine, TrainingLoss
from pipeline.training import progress
from pipeline.training.progress import JsonLines, Progress, clock, progress_line
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
    assert state.since_validation == Sums()


def test_a_state_survives_json():
    state = TrainingState(
        3, 2, 1, Sums(0.1, 0.2, 3), UPDATES, None, data_loss(1 / 3), BestLoss(step=1, **dict(data_loss(0.1)))
    )
    assert TrainingState.from_dict(json.loads(json.dumps(state.as_dict()))) == state


def test_rewinding_forgets_later_and_half_written_lines(tmp_path):
    lines = JsonLines(tmp_path / "lines")
    for step in range(5):
        lines.append(SampleLine(step=step, source="größer", reference="", hypothesis=""))
    with open(lines.path, "ab") as handle:
        handle.write('{"step": 1, "source": "größer'.encode()[: -random.randrange(1, 6)])
    lines.rewind(2)
    assert [json.loads(line)["step"] for line in lines.path.read_text().split("\n")[:-1]] == [0, 1, 2]


def test_rewind_refuses_a_torn_middle_line_and_keeps_the_file(tmp_path):
    lines = JsonLines(tmp_path / "lines")
    lines.append(MonitorLine(step=1, values={}))
    torn = lines.path.read_bytes() + b'{"step": 1, "te\n' + lines.path.read_bytes()
    lines.path.write_bytes(torn)
    with pytest.raises(UserError, match=r"lines: line 2: not a JSON record"):
        lines.rewind(2)
    assert lines.path.read_bytes() == torn


def test_a_full_disk_is_one_clear_message(tmp_path):
    with pytest.raises(UserError, match=r"can't write .*lines: No such file .*check its disk"):
        JsonLines(tmp_path / "no such folder" / "lines").append(MonitorLine(step=1, values={}))


def test_first_last_and_every_25th_of_the_steps_are_reported(tmp_path, caplog):
    caplog.set_level("INFO")
    told = Progress("weighted/A seed 1", tmp_path, first=0, end=1010)
    for step in range(1, 1011):
        told.count(step, Sums(2.0, 1.0, 1), 1e-3, 0.5, waited_s=0.0)
    records = [json.loads(line) for line in (tmp_path / "progress.jsonl").read_text().split("\n")[:-1]]
    steps = [1, *range(40, 1001, 40), 1010]
    assert [record["step"] for record in records] == steps
    assert records[1]["loss_per_token"] == 2.0
    assert [message.split("  loss")[0] for message in caplog.messages] == [
        f"weighted/A seed 1  step {step}/1010" for step in steps
    ]


def test_a_line_every_few_seconds_has_the_numbers_of_the_file(tmp_path, caplog, monkeypatch):
    caplog.set_level("INFO")
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
    told = Progress("weighted/A seed 1", tmp_path, first=390, end=600)
    told.count(400, Sums(2.13 * 7, math.log(8.4) * 7, 7), 1.1e-3, 0.5, waited_s=0.0)
    (record,) = read_lines_as(AnyProgress, tmp_path / "progress.jsonl")
    assert caplog.messages == [progress_line("weighted/A seed 1", record)]
    assert "step 400/600  loss 2.130  ppl 8.40  lr 1.10e-03" in caplog.messages[0]


def test_log_line_gives_the_share_of_time_waiting_for_batches(tmp_path, caplog, monkeypatch):
    caplog.set_level("INFO")
    now = iter([100.0, 120.0, 130.0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
    told = Progress("toy", tmp_path, first=0, end=60)
    told.count(1, Sums(1.0, 1.0, 600), 1e-3, 0.5, waited_s=0.01)
    told.count(2, Sums(1.0, 1.0, 600), 1e-3, 0.5, waited_s=3.51)
    assert "tok/s  waited 0 %  " in caplog.messages[0] and "tok/s  waited 35 %  " in caplog.messages[1]


def test_speed_covers_the_last_interval_and_time_left_all_steps(tmp_path, monkeypatch):
    now = iter([100.0, 120.0, 140.0, 150.0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    told = Progress("toy", tmp_path, first=30, end=60)
    told.count(31, Sums(1.0, 1.0, 600), 1e-3, 0.5, waited_s=5.0)
    monkeypatch.setattr(progress, "LINE_EVERY_S", 25.0)
    told.count(33, Sums(1.0, 1.0, 200), 1e-3, 0.5, waited_s=9.0)
    told.count(35, Sums(1.0, 1.0, 100), 1e-3, 0.5, waited_s=20.0)
    first, second = read_lines_as(AnyProgress, tmp_path / "progress.jsonl")
    assert (first.tokens_per_s, first.loader_share, first.seconds_left) == (30.0, 0.25, 20 * 29)
    assert (second.tokens_per_s, second.loader_share, second.seconds_left) == (10.0, 0.5, 10 * 25)


@pytest.mark.parametrize(("seconds", "shown"), [(0.4, "0:00"), (32, "0:32"), (725, "12:05"), (11049, "3:04:09")])
def test_time_left_reads_like_a_clock(seconds, shown):
    assert clock(seconds) == shown


def test_monitored_values_are_logged_200_times_and_at_the_end(tmp_path):
    progress = Progress("toy", tmp_path, 0, 1001)
    for step in range(1, 1002):
        progress.monitor(step, lambda step=step: {"kappa": [float(step)]})
    lines = [json.loads(line) for line in (tmp_path / "progress.jsonl").read_text().strip().split("\n")]
    assert {line["event"] for line in lines} == {"monitor"}
    assert [line["step"] for line in lines] == [*range(5, 1001, 5), 1001]
    assert all(line["values"] == {"kappa": [line["step"]]} for line in lines)


def test_a_model_without_monitors_leaves_the_log_alone(tmp_path):
    Progress("toy", tmp_path, 0, 10).monitor(10, dict)
    assert not (tmp_path / "progress.jsonl").exists()
