"""A training that diverges rolls back once to its last good weights, skips the harmful data, and then reports it."""

import random

import pytest
import torch
from safetensors.torch import load_file
from test_survival import in_child

from pipeline.core.errors import UserError
from pipeline.core.json_csv import read_json
from pipeline.core.records.training import BestLoss, Loss
from pipeline.training import guards
from pipeline.training.job import train_run
from pipeline.training.optimiser import Optimiser
from pipeline.training.specification import weight_files
from pipeline.training.state import TrainingState
from pipeline.training.trainer import Trainer

SETTINGS = {"max_steps": 24, "validate_every": 6, "checkpoint_every": 4, "keep_checkpoints": 2}
"""Good weights are kept after 4, 12, 16 … updates."""


@pytest.fixture
def explode(monkeypatch):
    """Multiplies the weights by something huge after each of the updates that are named."""
    update = Optimiser.step

    def explode_after(*updates, factor=1e27):
        def exploding(self, number, annealings=0):
            update(self, number, annealings)
            if number in updates:
                with torch.no_grad():
                    for weight in self.weights:
                        weight.mul_(factor)

        monkeypatch.setattr(Optimiser, "step", exploding)

    return explode_after


def test_diverged_finite_weights_are_rolled_back_and_not_kept(new_run, explode, caplog):
    run = new_run(**SETTINGS)
    explode(14)
    train_run(run, threads=1)
    done = read_json(run / "done.json")
    assert done["returned"] == {"at": 18, "to": 12} and done["dev"]["nll_per_token"] < 4
    assert "rolling back to" in caplog.text and "continuing from step 18" in caplog.text
    for _, path in weight_files(run):
        assert all(tensor.abs().max() < 100 for tensor in load_file(path).values())


@pytest.mark.parametrize("factor", [1e27, float("inf")], ids=["absurd", "infinite"])
def test_training_killed_at_random_rolls_back_once_to_same_bytes(new_run, explode, outcome, monkeypatch, factor):
    monkeypatch.setattr(guards, "MOST_SKIPPED_IN_A_ROW", 3)
    undisturbed, disturbed = (new_run(name, **SETTINGS) for name in ("undisturbed", "disturbed"))
    explode(13, factor=factor)
    train_run(undisturbed, threads=1)
    for _ in range(4):
        in_child(lambda: train_run(disturbed, threads=1, save_every_s=0.0), killed_after_s=random.uniform(0.1, 0.5))
    train_run(disturbed, threads=1)
    assert read_json(disturbed / "done.json")["returned"]["to"] in (4, 12)
    assert outcome(disturbed) == outcome(undisturbed)


def test_training_stopped_after_a_roll_back_does_not_repeat_it(new_run, explode):
    run = new_run(**SETTINGS)
    explode(7, 20)
    validate = Trainer.validate

    def stopped(self):
        if self.state.step == 18:
            self.stop._note(15, None)
        return validate(self)

    with pytest.MonkeyPatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr(Trainer, "validate", stopped)
        train_run(run, threads=1)
    with pytest.raises(UserError, match=r"after step 24, again after rolling back at step 12; last good .*Lower"):
        train_run(run, threads=1)
    assert not (run / "done.json").exists()


def test_divergence_before_any_checkpoint_fails_with_advice(new_run, explode):
    run = new_run(**SETTINGS)
    explode(2)
    with pytest.raises(UserError, match=r"loss is .* after step 6; last good checkpoint: none yet.*lr.*clip_norm"):
        train_run(run, threads=1)


@pytest.mark.parametrize(
    ("nll", "best", "sane"),
    [
        *((3.0, None, True), (30.0, 2.0, True), (32.0, 2.0, False), (40.0, 5.0, True)),
        *((float("nan"), None, False), (float("inf"), 5.0, False), (1e27, None, False)),
    ],
)
def test_loss_is_sane_up_to_ten_times_uniform_guess_or_best(nll, best, sane):
    """A uniform guess among 24 symbols costs 3.18 nats."""
    state = TrainingState(
        best_dev=None if best is None else BestLoss(nll_per_token=best, perplexity=1, tokens=1, step=1)
    )
    assert state.is_sane(Loss(nll_per_token=nll, perplexity=1, tokens=1), 24) is sane
