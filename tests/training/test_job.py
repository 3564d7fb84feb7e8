"""Files of a run's folder, and conditions under which it is trained."""

import errno
import itertools
import os
import re
from pathlib import Path

import pytest
import torch
from run_folders import change_settings, json_lines
from safetensors.torch import load_file

from pipeline.__main__ import main
from pipeline.config import load_run
from pipeline.core.digests import sha256_file
from pipeline.core.errors import UserError
from pipeline.core.json_csv import read_json
from pipeline.core.layout import PROGRESS_FILE
from pipeline.core.records.corpus import read_corpus
from pipeline.core.records.record import read_lines_as
from pipeline.core.records.training import AnyProgress, MonitorLine
from pipeline.planning.corpus_size import StepShape
from pipeline.planning.run_forecast import RunForecast
from pipeline.training.checkpoint_files import weight_files
from pipeline.training.job import train_run
from pipeline.training.progress import JsonLines
from pipeline.training.specification import run_key
from pipeline.training.trainer import Trainer
from pipeline.training.warm_start import move_aside
from pipeline.workflow.runs import is_locked


def train_by_command(run: Path, *options: str) -> int:
    return main(["train", "--run", str(run), "--threads", "1", "--device", "cpu", *options])


def test_a_finished_run_says_what_it_is(undisturbed):
    done, cost = (read_json(undisturbed / name) for name in ("done.json", "cost.json"))
    weights, corpus = load_file(undisturbed / "model.safetensors"), Path(load_run(undisturbed / "run.yaml").corpus)
    assert done["key"] == run_key(undisturbed) and done["steps"] == 12
    assert done["weights_digest"] == sha256_file(undisturbed / "model.safetensors")
    assert {"nll_per_token", "perplexity"} <= done["dev"].keys()
    assert done["provenance"]["vocabulary"] == read_corpus(corpus).vocabulary
    assert done["parameters"]["total"] == sum(tensor.numel() for tensor in weights.values())
    kept = {path.name for path in (undisturbed / "checkpoints").iterdir()}
    assert kept == {f"step-{step}.safetensors" for step in (4, 8, 12)} | {"step-12.resume.safetensors"}
    assert cost["total"]["steps"] == 12 and cost["total"]["tokens"] > 0 and cost["total"]["flops"] > 0
    samples = json_lines(undisturbed / "samples.jsonl")
    assert [sample["step"] for sample in samples] == [6, 6, 6, 12, 12, 12]
    assert all(sample["source"] == sample["reference"] for sample in samples)


def test_a_finished_run_takes_the_disk_of_its_forecast(undisturbed):
    spec, there = load_run(undisturbed / "run.yaml"), undisturbed.rglob("*.safetensors")
    written = sum(tensor.nbytes for path in there for tensor in load_file(path).values())
    found = RunForecast(spec, read_corpus(Path(spec.corpus)).vocab_sizes, StepShape(0, 0, 0, 0, 0), 0.0, 0.0)
    assert found.kept_bytes == pytest.approx(written, rel=0.02)


@pytest.mark.parametrize("undisturbed", ["transformer"], indirect=True)
def test_same_seed_gives_same_bytes_and_another_seed_differs(train, undisturbed, disturbed, outcome):
    train_run(disturbed, threads=1)
    assert outcome(disturbed) == outcome(undisturbed)
    step_4, other = "checkpoints/step-4.safetensors", train("other", seed=2, max_steps=4)
    assert (other / step_4).read_bytes() != (undisturbed / step_4).read_bytes()


@pytest.mark.parametrize("lost", ["nothing", "done.json", "weights", "a bit of the weights", "the end of the weights"])
def test_finished_run_is_not_trained_again_but_repaired(lost, undisturbed, outcome, monkeypatch):
    before, weights = outcome(undisturbed), undisturbed / "model.safetensors"
    content = bytearray(weights.read_bytes())
    match lost:
        case "done.json":
            (undisturbed / "done.json").unlink()
        case "weights":
            weights.unlink()
        case "a bit of the weights":
            content[-5] ^= 4
            weights.write_bytes(content)
        case "the end of the weights":
            weights.write_bytes(content[:-9])
    monkeypatch.setattr(Trainer, "train", lambda self: pytest.fail("trained again"))
    train_run(undisturbed, threads=1)
    assert outcome(undisturbed) == before
    assert (undisturbed / "model.safetensors.damaged").exists() is lost.endswith("of the weights")


def test_no_other_process_can_train_a_run_that_is_being_trained(new_run, monkeypatch):
    run, held = new_run(), []
    monkeypatch.setattr(Trainer, "train", lambda self: held.append(is_locked(run)))
    monkeypatch.setattr("pipeline.training.job.finish", lambda trainer: held.append(is_locked(run)))
    assert [train_by_command(run), train_by_command(run, "--restart")] == [0, 0]
    assert held == [True] * 4 and not is_locked(run)


def test_only_the_first_process_repairs_a_finished_run(undisturbed, monkeypatch):
    """Another one might rename what the first has just written."""
    (undisturbed / "model.safetensors").write_bytes(damaged := b"no weights")
    before = {path.name for path in undisturbed.iterdir()}
    for name, value in {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    train_run(undisturbed, threads=1)
    assert (undisturbed / "model.safetensors").read_bytes() == damaged
    assert {path.name for path in undisturbed.iterdir()} == before


def test_several_processes_do_not_restart_a_run(undisturbed, monkeypatch, capsys):
    before = (undisturbed / "model.safetensors").read_bytes()
    for rank in "01":
        for name, value in {"WORLD_SIZE": "2", "RANK": rank, "LOCAL_RANK": rank}.items():
            monkeypatch.setenv(name, value)
        assert train_by_command(undisturbed, "--restart") == 1
        assert "with one process first" in capsys.readouterr().err
    assert (undisturbed / "model.safetensors").read_bytes() == before


def test_checkpoint_of_another_run_is_refused_until_a_restart(new_run, monkeypatch, capsys):
    run = new_run(max_steps=2)
    with monkeypatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr(Trainer, "asked_to_stop", True)
        train_run(run, threads=1)
    run = run.rename(run.with_name("my run"))
    change_settings(run, {"tokens_per_update": 151})
    (checkpoint,) = (run / "checkpoints").iterdir()
    before = checkpoint.read_bytes()
    assert train_by_command(run) == 1
    assert re.fullmatch(
        r".*step-0\.resume\.safetensors: is a checkpoint of another run.*changed since.* '.*/my run' --restart`\n",
        capsys.readouterr().err,
    )
    assert checkpoint.read_bytes() == before
    assert train_by_command(run, "--restart") == 0
    assert read_json(run / "done.json")["key"] == run_key(run)


def test_finished_run_is_retrained_and_kept_when_settings_change(train, outcome, caplog):
    caplog.set_level("INFO")
    run, fresh = train("run", max_steps=2, max_length=7), train("fresh", max_steps=3, max_length=7)
    assert re.search(r"padding .* %; [1-9]\d* pairs over 7", caplog.text)
    before, key = outcome(run), run_key(run)
    change_settings(run, {"max_steps": 3})
    train_run(run, threads=1)
    assert outcome(run) == outcome(fresh)
    old = run.with_name(f"run.before-{key[:8]}")
    assert outcome(old) == before and str(old) in caplog.text
    assert {path.name for path in old.iterdir()} >= {"cost.json", "progress.jsonl", "samples.jsonl"}
    assert read_json(run / "cost.json")["total"]["starts"] == 1


def test_weighted_run_killed_at_start_logs_its_draw_once(new_run, monkeypatch):
    run = new_run(architecture="weighted_transformer", max_steps=4, branch_freeze_steps=0)
    JsonLines(run / PROGRESS_FILE).append(MonitorLine(step=0, values={"encoder.0.kappa": [9.0]}))  # then came the kill
    drawn, do_all = [], Trainer._loop

    def look_first(trainer: Trainer) -> None:
        drawn.append(trainer.model.monitors())
        do_all(trainer)

    monkeypatch.setattr(Trainer, "_loop", look_first)
    train_run(run, threads=1)
    found = [line for line in read_lines_as(AnyProgress, run / PROGRESS_FILE) if isinstance(line, MonitorLine)]
    assert [line.step for line in found] == [0, 1, 2, 3, 4]
    assert found[0].values == drawn[0] != found[1].values


def test_killed_set_aside_move_resumes_and_keeps_older_folders(tmp_path):
    run, names = tmp_path / "run", ("done.json", "cost.json", "events", "model.safetensors")
    for content, expected in (("one", "run.before-0123abcd"), ("two", "run.before-0123abcd-2")):
        run.mkdir(exist_ok=True)
        for name in names:
            (run / name).write_text(content)
        old = tmp_path / expected
        old.mkdir()
        (run / "done.json").rename(old / "done.json")  # then came the kill
        assert move_aside(run, "0123abcdef") == old
        assert {path.name: path.read_text() for path in old.iterdir()} == dict.fromkeys(names, content)
        assert not list(run.iterdir())


def test_a_kept_checkpoint_holds_the_weights_after_its_step(trained_once, train):
    long, short = trained_once(architecture="transformer"), train("short", max_steps=8)
    kept, final = load_file(long / "checkpoints" / "step-8.safetensors"), load_file(short / "model.safetensors")
    assert all(torch.equal(kept[name], final[name]) for name in final)


def test_full_disk_while_saving_is_one_error_and_resumes_later(new_run, trained_once, outcome, monkeypatch, capsys):
    undisturbed, run = trained_once(architecture="transformer"), new_run()
    real, calls = os.fsync, itertools.count()

    def fills(descriptor):
        if next(calls) > 9:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", fills)
        assert train_by_command(run) == 1
    assert re.fullmatch(r"error: can't write .*: No space left on device; free some space.*\n", capsys.readouterr().err)
    assert not list(run.rglob(".*.tmp"))
    assert weight_files(run)
    assert train_by_command(run) == 0
    assert outcome(run) == outcome(undisturbed)


def test_bf16_learns_like_fp32(train):
    runs = [train(precision, precision=precision, max_steps=10, validate_every=10) for precision in ("fp32", "bf16")]
    fp32, bf16 = (read_json(run / "done.json")["train"]["loss_per_token"] for run in runs)
    assert bf16 == pytest.approx(fp32, rel=0.02)


def test_a_weighted_run_without_its_own_warm_up_is_refused(new_run):
    with pytest.raises(UserError, match="branch_warmup_steps is missing"):
        train_run(new_run(architecture="weighted_transformer", branch_warmup_steps=None))


def test_a_folder_that_is_no_run_is_one_message_and_stays_absent(tmp_path, capsys):
    assert main(["train", "--run", str(tmp_path / "absent")]) == 1
    assert re.match(r"error: .*absent/run\.yaml: no such file", capsys.readouterr().err)
    assert not (tmp_path / "absent").exists()
