"""Eight processes train a model to the result of one; peers fail if one ends or hangs, and a restart resumes."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from forked_ranks import fork_ranks
from safetensors.torch import load_file

from pipeline.core.errors import UserError
from pipeline.core.json_csv import read_json
from pipeline.training import distributed
from pipeline.training.job import train_run
from pipeline.training.step import StepRunner

RANKS = 8
FAILED = 3
pytestmark = pytest.mark.slow


def by_eight(run: Path, at_update: Callable[[int, int], None] = lambda rank, step: None) -> list[int]:
    """Train `run` by forked processes; their exit codes, `FAILED` after a UserError."""

    def train(rank: int) -> None:
        accumulate = StepRunner.accumulate
        StepRunner.accumulate = lambda self, step, update: at_update(rank, step) or accumulate(self, step, update)
        try:
            train_run(run, device="cpu", threads=1)
        except UserError as error:
            (run / f"said.{rank}").write_text(str(error))
            raise SystemExit(FAILED) from error

    children = fork_ranks(RANKS, train)
    deadline, codes = time.monotonic() + 300, {}
    while len(codes) < RANKS and time.monotonic() < deadline:
        for child in children:
            if child not in codes and (ended := os.waitpid(child, os.WNOHANG))[0]:
                codes[child] = os.waitstatus_to_exitcode(ended[1])
        if len(codes) == RANKS - 1 and FAILED in codes.values():
            (hanging,) = set(children) - set(codes)
            os.kill(hanging, 9)
        time.sleep(0.05)
    return [codes[child] for child in children]


def test_eight_processes_match_one_with_many_buckets(new_run, monkeypatch):
    # with a small eps, Adam turns the rounding of a gradient near zero into a whole step
    settings = {
        "tokens_per_update": 1600,
        "max_steps": 4,
        "validate_every": 4,
        "adam_eps": 1e-3,
        "micro_batch_tokens": 80,
    }
    alone, shared = (new_run(name, **settings) for name in ("alone", "shared"))
    train_run(alone, threads=1)
    monkeypatch.setattr(distributed, "BUCKET_BYTES", 2000)
    assert by_eight(shared) == [0] * RANKS
    one, two = load_file(alone / "model.safetensors"), load_file(shared / "model.safetensors")
    for name, weight in one.items():
        torch.testing.assert_close(two[name], weight, rtol=1e-4, atol=1e-5)
    costs = [read_json(run / "cost.json")["total"] for run in (alone, shared)]
    assert costs[0]["tokens"] == costs[1]["tokens"] and costs[0]["flops"] == costs[1]["flops"]


@pytest.mark.parametrize("end", [lambda: os._exit(1), lambda: time.sleep(600)], ids=["dies", "hung"])
def test_peers_fail_when_a_process_ends_and_the_restart_resumes(new_run, monkeypatch, end):
    monkeypatch.setattr(distributed, "TIMEOUT", distributed.TIMEOUT / 40)
    run = new_run(max_steps=6, validate_every=6, checkpoint_every=2, tokens_per_update=200, micro_batch_tokens=80)
    codes = by_eight(run, lambda rank, step: end() if (rank, step) == (5, 3) else None)
    assert codes.count(FAILED) == RANKS - 1, codes
    for rank in set(range(RANKS)) - {5}:
        assert "another process of this training died or hung" in (run / f"said.{rank}").read_text()
    train_run(run, threads=1)
    assert read_json(run / "done.json")["steps"] == 6
