import json
from unittest.mock import Mock

import pytest
import torch
from made_records import data_loss, validation_line
from toy_run import write_corpus, write_run

from pipeline.core.errors import UserError
from pipeline.core.files import append_line
from pipeline.decoding import averaging
from pipeline.decoding.averaging import write_average
from pipeline.training.tensor_file import read_tensor_file, write_tensor_file


@pytest.fixture
def run(tmp_path):
    """A run with four checkpoints."""
    write_run(tmp_path / "run", write_corpus(tmp_path / "corpus"), checkpoints=4)
    return tmp_path / "run"


def average(folder, count, best=False):
    write_average(folder, count, best, folder / "averaged/mean.safetensors")


def assert_is_average_of(run, steps):
    """Check the averaged weights, to half a unit of float32, and the steps that are recorded."""
    mean, _ = read_tensor_file(run / "averaged/mean.safetensors")
    checkpoints = [read_tensor_file(run / f"checkpoints/step-{step}.safetensors")[0] for step in steps]
    assert set(mean) == set(checkpoints[0])
    for name, tensor in mean.items():
        expected = torch.stack([weights[name].double() for weights in checkpoints]).mean(0)
        torch.testing.assert_close(tensor.double(), expected, rtol=1e-7, atol=0)
    assert [entry["step"] for entry in json.loads((run / "averaged/mean.json").read_text())["inputs"]] == steps


def test_average_is_the_arithmetic_mean_of_the_last_checkpoints(run):
    average(run, 3)
    assert_is_average_of(run, [2, 3, 4])


def test_checkpoints_of_another_run_are_refused(run, tmp_path):
    stray = "checkpoints/step-3.safetensors"
    write_run(tmp_path / "other", tmp_path / "corpus", checkpoints=3, seed=2)
    (run / stray).write_bytes((tmp_path / "other" / stray).read_bytes())
    with pytest.raises(UserError, match=r"step-3\.safetensors: belongs to another run"):
        average(run, 3)
    assert not (run / "averaged/mean.safetensors").exists()


def test_damaged_checkpoints_are_refused(run):
    path = run / "checkpoints/step-4.safetensors"
    path.write_bytes(path.read_bytes()[:-4] + b"\x00\x00\x80\x3f")
    with pytest.raises(UserError, match=r"step-4\.safetensors: content does not match"):
        average(run, 2)


def test_missing_checkpoints_are_not_made_up_for(run):
    with pytest.raises(UserError, match="4 checkpoints, but 5 should be averaged"):
        average(run, 5)
    (run / "checkpoints/step-2.safetensors").unlink()
    with pytest.raises(UserError, match=r"a checkpoint between steps \[1, 3, 4\] is missing"):
        average(run, 3)
    (run / "checkpoints/step-4.safetensors").unlink()
    with pytest.raises(UserError, match="the newest is of step 3, but the run ended at step 4"):
        average(run, 2)


def test_an_unfinished_run_is_not_averaged(run):
    (run / "done.json").unlink()
    with pytest.raises(UserError, match="not finished"):
        average(run, 1)


def test_checkpoints_of_another_shape_are_refused(run):
    tensors, facts = read_tensor_file(run / "checkpoints/step-3.safetensors")
    tensors.pop(next(iter(tensors)))
    write_tensor_file(run / "checkpoints/step-3.safetensors", tensors, facts)
    with pytest.raises(UserError, match=r"step-4\.\w+: holds other tensors than \S+/step-3\."):
        average(run, 2)


def note_losses(folder, losses):
    """Write the losses of validations after steps 1, 2, …"""
    for step, nll in enumerate(losses, start=1):
        append_line(folder / "progress.jsonl", validation_line(step=step, dev=data_loss(nll)).line().encode())


@pytest.mark.parametrize(
    "losses, count, expected", [((3, 1, 2, 4), 2, [2, 3]), ((1, 2, 1, 1), 2, [1, 3]), ((3, 1, 2, 4), 1, [2])]
)
def test_best_checkpoints_have_lowest_dev_loss_earlier_on_ties(run, losses, count, expected):
    note_losses(run, losses)
    average(run, count, best=True)
    assert_is_average_of(run, expected)


def test_losses_of_the_best_checkpoints_are_read_once(run, monkeypatch):
    note_losses(run, (3, 1, 2, 4))
    read = Mock(wraps=averaging.read_lines_as)
    monkeypatch.setattr(averaging, "read_lines_as", read)
    average(run, 2, best=True)
    assert read.call_count == 1


def test_best_average_names_the_first_step_without_dev_loss(run):
    note_losses(run, [3, 1])
    with pytest.raises(UserError, match="the checkpoint after step 3 has no development loss"):
        average(run, 2, best=True)
