"""Models learn, and the loop computes its equations."""

import math
import random
import threading
from itertools import count
from types import SimpleNamespace as Some

import pytest
import torch

from pipeline.config import load_run
from pipeline.data.batches.parallel_batches import ParallelBatches, ParallelSplit
from pipeline.training.distributed import Group
from pipeline.training.job import train_run
from pipeline.training.step import Prefetcher, StepRunner, micro_seed

RECURRENT = {"d_embedding": 32, "d_state": 32, "d_attention": 64, "d_readout": 32}
RECURRENT |= {"init_scale": 0.3, "output_dropout": 0.0}
BY_TOKENS = {"tokens_per_update": 600, "warmup_steps": 100}
BY_SENTENCES = {"tokens_per_update": None, "warmup_steps": None, "sentences_per_update": 64}
ADAM = BY_SENTENCES | {"schedule": "constant", "lr": 0.005, "clip_norm": 1.0}
# Section 4.2 of Convolutional Sequence to Sequence Learning but for sizes and the number of updates.
NAG = {"optimiser": "nag", "schedule": "plateau", "lr": 0.25, "clip_norm": 0.1, "loss_mean": "sentence"} | BY_SENTENCES
CONVOLUTIONAL = {"encoder_layers": 2, "decoder_layers": 2, "d_embedding": 32, "d_hidden": 32, "d_readout": 32}
COPIERS = {
    "transformer": ("transformer", {}, BY_TOKENS),
    "weighted_transformer": ("weighted_transformer", {}, BY_TOKENS | {"branch_freeze_steps": 100}),
    "recurrent": ("recurrent", {"channels": "rnn", **RECURRENT}, ADAM),
    "convolutional": ("convolutional", CONVOLUTIONAL, NAG),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COPIERS)
def test_copying_is_learnt_on_any_seed(train, assert_learns, name):
    architecture, model, training = COPIERS[name]
    settings = {"max_steps": 500, "micro_batch_tokens": 600, "validate_every": 50, "checkpoint_every": 500}
    settings |= {"label_smoothing": 0.0, "architecture": architecture, "model": model} | training
    assert_learns(train, math.log(2), seed=random.randrange(1 << 31), **settings)


@pytest.mark.parametrize("loss_mean", ["token", "sentence"])
def test_step_gradient_equals_that_of_its_pairs_in_one_batch(new_run, copy_corpus, monkeypatch, loss_mean):
    run = new_run(max_steps=1, loss_mean=loss_mean, micro_batch_tokens=80, model={"dropout": 0.0})
    whole_updates = load_run(run / "run.yaml").training.model_copy(update={"micro_batch_tokens": 1000})
    compared, accumulate = [], StepRunner.accumulate

    def compare(self, step, update):
        result = accumulate(self, step, update)
        compared.append([gradient.clone() for gradient in self.optimiser.gradients()])
        self.optimiser.zero_grad()
        whole = ParallelBatches(ParallelSplit(copy_corpus, "train"), whole_updates, seed=1).micro_batches(step)
        assert len(update.micro_batches) > len(whole) == 1
        sums = self.model.loss(whole[0], 0.1)
        (sums.loss / (sums.tokens if loss_mean == "token" else len(whole[0].src))).backward()
        compared.append([*self.optimiser.gradients()])
        return result

    monkeypatch.setattr(StepRunner, "accumulate", compare)
    train_run(run, threads=1)
    torch.testing.assert_close(*compared, rtol=1e-4, atol=1e-6)


def test_no_two_micro_batches_share_a_seed():
    """Two processes share those of a step."""
    processes = [Some(spec=Some(seed=seed), group=Group(rank, 2)) for seed in range(4) for rank in range(2)]
    own = [StepRunner.micro_seed(process, step, n) for process in processes for step in range(40) for n in range(20)]
    seeds = {micro_seed(seed, step, index) for seed in range(4) for step in range(40) for index in range(40)}
    assert seeds == {*own} and len(seeds) == len(own) == 4 * 40 * 40
    assert all(0 <= seed < 1 << 63 for seed in seeds)


def test_every_step_comes_once_in_order_with_its_content():
    loaded = []
    prefetcher = Prefetcher(lambda step: loaded.append(step) or step**2)
    assert list(prefetcher.steps(3, 7)) == [(3, 9), (4, 16), (5, 25), (6, 36)]
    assert loaded == [3, 4, 5, 6] and not list(prefetcher.steps(4, 4))


def test_the_next_step_is_loaded_while_this_one_is_used():
    loaded = [threading.Event() for _ in range(3)]
    for step, _ in Prefetcher(lambda step: loaded[step].set()).steps(0, 3):
        assert step == 2 or loaded[step + 1].wait(5)


def test_the_wait_is_counted(monkeypatch):
    """The clock goes on by a second each time that it is read."""
    monkeypatch.setattr("pipeline.training.step.time.perf_counter", count().__next__)
    prefetcher = Prefetcher(lambda step: step)
    assert len(list(prefetcher.steps(0, 3))) == prefetcher.waited_s == 3


def test_an_error_in_loading_is_raised_where_the_step_is_used():
    steps = Prefetcher(lambda step: 1 // (2 - step)).steps(0, 4)
    assert next(steps) == (0, 0) and next(steps) == (1, 1)
    with pytest.raises(ZeroDivisionError):
        next(steps)
