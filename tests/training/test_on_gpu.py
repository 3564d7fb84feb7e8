"""Whole trainings on the GPU of this machine, by CUDA graphs; left out where there is none."""

import logging
import os
import signal
from pathlib import Path

import pytest
import torch

from pipeline.training.job import train_run
from pipeline.training.progress import Progress

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]
MICRO_BATCHES = {"one": 200, "several": 80}
ARCHITECTURES = ["transformer", "weighted_transformer", "recurrent", "convolutional"]


def train(run: Path) -> None:
    train_run(run, device="cuda", threads=1)


def stop_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Have the next training asked to stop after a step."""
    count, asked = Progress.count, []

    def counted(self, done: int, *rest) -> None:
        count(self, done, *rest)
        if done == step and not asked:
            asked.append(done)
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Progress, "count", counted)


@pytest.mark.parametrize("parts", MICRO_BATCHES)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_stopped_training_on_a_gpu_ends_in_the_same_bytes(new_run, outcome, monkeypatch, caplog, architecture, parts):
    settings = {"architecture": architecture, "micro_batch_tokens": MICRO_BATCHES[parts], "precision": "bf16"}
    undisturbed, stopped = new_run("undisturbed", **settings), new_run("stopped", **settings)
    with caplog.at_level(logging.WARNING):
        train(undisturbed)
        stop_at(monkeypatch, 5)
        with pytest.raises(SystemExit):
            train(stopped)
        train(stopped)
    assert "captured" not in caplog.text, "no graph failed to be recorded"
    assert outcome(stopped) == outcome(undisturbed)
