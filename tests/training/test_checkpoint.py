import random
import re

import pytest
import torch
from made_records import MACHINE, training_config

import pipeline.core.disk as disk
from pipeline.core.errors import UserError
from pipeline.models.architectures import build_model
from pipeline.models.transformer.settings import TransformerConfig
from pipeline.training.checkpoint import Checkpoints
from pipeline.training.checkpoint_files import weight_files
from pipeline.training.optimiser import Optimiser, Schedule
from pipeline.training.state import Sums, TrainingState
from pipeline.training.tensor_file import load_weights

CONFIG = TransformerConfig(architecture="transformer", num_layers=1, d_model=8, d_ff=8, num_heads=1)
TRAINING = training_config(max_steps=9, schedule="inverse_sqrt", lr=None, warmup_steps=4, tokens_per_update=1)


def new_optimiser() -> Optimiser:
    return Optimiser(build_model(CONFIG, (9, 9)), Schedule(CONFIG, TRAINING), TRAINING)


def train(optimiser: Optimiser, step: int) -> TrainingState:
    for parameter in optimiser.parameters:
        parameter.grad = torch.randn_like(parameter)
    optimiser.step(step)
    return TrainingState(step=step + 1, since_validation=Sums(random.random(), 0.1, 3))


@pytest.fixture
def checkpoints(tmp_path) -> Checkpoints:
    return Checkpoints(tmp_path, "this run's key", keep=3)


def save(checkpoints: Checkpoints, optimiser: Optimiser, steps: int) -> list[TrainingState]:
    states = []
    for step in range(steps):
        states.append(train(optimiser, step))
        checkpoints.save_weights(optimiser.model, step + 1)
        checkpoints.save_resume(optimiser.model, optimiser, states[-1], MACHINE)
    return states


def names(checkpoints: Checkpoints) -> set[str]:
    return {path.name for path in checkpoints.folder.iterdir()}


def weights(optimiser: Optimiser) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in optimiser.parameters]


def test_newest_checkpoints_are_kept_by_step_not_by_file_name(checkpoints):
    """Three with weights and two to resume from; of a finished run, only the last."""
    save(checkpoints, new_optimiser(), 11)
    kept = {f"step-{step}.safetensors" for step in (9, 10, 11)}
    assert names(checkpoints) == kept | {f"step-{step}.resume.safetensors" for step in (10, 11)}
    assert [step for step, _ in weight_files(checkpoints.run_folder)] == [9, 10, 11]
    assert checkpoints.newest_resume_point().metadata["step"] == 11
    for _ in range(2):
        checkpoints.clear_resume()
        assert names(checkpoints) == kept | {"step-11.resume.safetensors"}
    assert checkpoints.newest_resume_point().metadata["step"] == 11


def test_damaged_checkpoint_is_reported_and_previous_one_used(checkpoints, caplog):
    save(checkpoints, new_optimiser(), 3)
    newest = checkpoints.folder / "step-3.resume.safetensors"
    content = bytearray(newest.read_bytes())
    content[-random.randrange(1, 400)] ^= 1
    newest.write_bytes(content)
    assert checkpoints.newest_resume_point().metadata["step"] == 2
    assert re.search(r"damaged.*step-3\.resume", caplog.text)
    assert not newest.exists()
    assert newest.with_name(f"{newest.name}.damaged").read_bytes() == content


def test_a_file_damaged_twice_is_kept_twice(checkpoints):
    for content in (b"first", b"second"):
        save(checkpoints, new_optimiser(), 1)
        (checkpoints.folder / "step-1.resume.safetensors").write_bytes(content)
        assert checkpoints.newest_resume_point() is None
    assert {path.read_bytes() for path in checkpoints.folder.glob("*.damaged*")} == {b"first", b"second"}
    checkpoints.clear()
    assert not names(checkpoints)


def test_save_that_reads_back_differently_keeps_older_files(checkpoints, monkeypatch):
    optimiser = new_optimiser()
    save(checkpoints, optimiser, 2)
    before = names(checkpoints)
    with monkeypatch.context() as patched:
        patched.setattr("pipeline.training.tensor_file.read_with_retries", lambda path: b"")
        with pytest.raises(UserError, match=r"reads back differently.*check the disk"):
            checkpoints.save_resume(optimiser.model, optimiser, train(optimiser, 2), MACHINE)
    assert names(checkpoints) == before | {"step-3.resume.safetensors.damaged"}
    assert checkpoints.newest_resume_point().metadata["step"] == 2


def test_half_written_files_are_removed(checkpoints):
    save(checkpoints, new_optimiser(), 1)
    before = names(checkpoints)
    (checkpoints.folder / ".step-2.safetensors.node.7.tmp").touch()
    (checkpoints.run_folder / ".cost.json.node.7.tmp").touch()
    checkpoints.remove_orphans()
    assert names(checkpoints) == before
    assert not list(checkpoints.run_folder.glob(".*.tmp"))


def test_checkpoints_of_another_run_are_recognised(checkpoints):
    save(checkpoints, new_optimiser(), 1)
    other = Checkpoints(checkpoints.run_folder, "another key", keep=3)
    assert not checkpoints.foreign()
    assert {path.name for path in other.foreign()} == names(checkpoints)


def test_weights_of_another_run_or_model_are_refused_by_name(checkpoints):
    optimiser, other = new_optimiser(), new_optimiser()
    save(checkpoints, optimiser, 1)
    ((_, path),) = weight_files(checkpoints.run_folder)
    assert load_weights(other.model, path, "this run's key")["step"] == 1
    torch.testing.assert_close(weights(optimiser), weights(other), rtol=0, atol=0)
    with pytest.raises(UserError, match=r"step-1.*belongs to another run \(key this run's k, not another run'\), or"):
        load_weights(other.model, path, "another run's key")
    with pytest.raises(UserError, match=r"belongs to another run"):
        load_weights(other.model, path, "a key before it in the alphabet")
    wider = build_model(CONFIG.model_copy(update={"d_ff": 12}), (9, 9))
    shapes = [{name: value.shape for name, value in model.state_dict().items()} for model in (other.model, wider)]
    first = min(name for name in shapes[0] if shapes[0][name] != shapes[1][name])
    with pytest.raises(UserError, match=rf"step-1.*other tensors .* first {first}; the model's code has changed"):
        load_weights(wider, path)


def test_too_little_disk_is_reported_before_training(checkpoints, monkeypatch):
    model = new_optimiser().model
    checkpoints.check_space(model, 3)
    free = disk.shutil.disk_usage("/")._replace(free=1000)
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _: free)
    with pytest.raises(UserError, match=r"keep_checkpoints.* will need .* are free"):
        checkpoints.check_space(model, 3)
