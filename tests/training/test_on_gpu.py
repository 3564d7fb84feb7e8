"""Whole trainings on the GPU of this machine, by CUDA graphs; left out where there is none.

With REPRISE_TEST_DEVICE=cpu they run on a CPU, without graphs and Triton. That checks the tests themselves.
"""

import itertools
import logging
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from run_folders import json_lines

from pipeline.cluster.local import free_port
from pipeline.core.json_csv import read_json
from pipeline.core.provenance import ROOT
from pipeline.models.kernels import TRITON_SWITCH, triton_asked_for
from pipeline.training.job import train_run

DEVICE = os.environ.get("REPRISE_TEST_DEVICE", "cuda")
absent = DEVICE == "cuda" and not torch.cuda.is_available()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(absent, reason="needs a GPU")]


several_or_one = pytest.mark.parametrize("tokens", [200, 80], ids=["one", "several"])
"""Micro-batches a step."""


@several_or_one
@pytest.mark.parametrize("architecture", ["transformer", "weighted_transformer", "recurrent", "convolutional"])
def test_a_stopped_training_on_a_gpu_ends_in_the_same_bytes(
    new_run, outcome, train_signalled, caplog, architecture, tokens
):
    settings = {"architecture": architecture, "micro_batch_tokens": tokens, "precision": "bf16"}
    undisturbed, stopped = new_run("undisturbed", **settings), new_run("stopped", **settings)
    with caplog.at_level(logging.WARNING):
        train_run(undisturbed, device=DEVICE, threads=1)
        train_signalled(stopped, step=4, device=DEVICE)
        train_run(stopped, device=DEVICE, threads=1)
    assert "CUDA graph" not in caplog.text, "every graph was recorded"
    assert outcome(stopped) == outcome(undisturbed)


SMALL = {"num_layers": 2, "d_model": 64, "d_ff": 256, "num_heads": 4, "dropout": 0.1, "attention_dropout": 0.1}
"""A Transformer that all Triton kernels suit."""
STEPS = 800 if DEVICE == "cuda" else 60
WHOLE = {"max_steps": STEPS, "validate_every": STEPS // 10, "checkpoint_every": STEPS // 10, "warmup_steps": 200}
SEEDS = (1, 2, 3, 4)


@pytest.fixture
def kernels(monkeypatch) -> Iterator[Callable[[str], None]]:
    """Sets REPRISE_GPU_KERNELS for the trainings of a test."""

    def choose(name: str) -> None:
        monkeypatch.setenv(TRITON_SWITCH, str(int(name == "triton")))
        triton_asked_for.cache_clear()

    yield choose
    monkeypatch.undo()
    triton_asked_for.cache_clear()


def dev_losses(run: Path) -> list[float]:
    """Return the development loss of each validation, in nats."""
    return [line["dev"]["nll_per_token"] for line in json_lines(run / "progress.jsonl") if "dev" in line]


def test_triton_kernels_learn_as_torch_kernels_do(new_run, kernels):
    curves: dict[str, list[list[float]]] = {"torch": [], "triton": []}
    for name, seed in itertools.product(curves, SEEDS):
        kernels(name)
        run = new_run(f"{name}-{seed}", seed=seed, model=SMALL, precision="bf16", **WHOLE)
        train_run(run, device=DEVICE, threads=1)
        used = read_json(run / "cost.json")["starts"][-1]["kernels"]
        assert used == (name if DEVICE == "cuda" else "torch")
        curves[name].append(dev_losses(run))
    for ours, theirs in zip(zip(*curves["triton"], strict=True), zip(*curves["torch"], strict=True), strict=True):
        print(" ".join(f"{loss:.4f}" for loss in (*theirs, *ours)))
        noise = statistics.stdev(theirs)
        assert abs(statistics.mean(ours) - statistics.mean(theirs)) < 4 * noise, "in standard deviations of a seed"
    assert max(curve[-1] for curve in curves["triton"]) < min(curve[0] for curve in curves["triton"])


def test_stopped_training_with_triton_ends_in_the_same_bytes(new_run, outcome, train_signalled, caplog, kernels):
    kernels("triton")
    settings = {"model": SMALL, "micro_batch_tokens": 80, "precision": "bf16"}
    undisturbed, stopped = new_run("undisturbed", **settings), new_run("stopped", **settings)
    train_run(undisturbed, device=DEVICE, threads=1)
    train_signalled(stopped, step=4, device=DEVICE)
    train_run(stopped, device=DEVICE, threads=1)
    assert "CUDA graph" not in caplog.text, "every graph was recorded"
    assert outcome(stopped) == outcome(undisturbed)


PROCESS = """
import sys
import torch
from pipeline.training import graph_cache, job
connect = torch.distributed.init_process_group
torch.distributed.init_process_group = lambda backend, **rest: connect("gloo", **rest)  # NCCL wants a GPU for each
run, device, graphs = sys.argv[1:]
def refuse(*_):
    raise RuntimeError("refused")
if graphs == "eager":
    graph_cache.CudaRecorder.record = refuse
job.train_run(run, device=device, threads=1)
"""


def train_by_two(run: Path, graphs: str) -> None:
    """Train by two processes that share the GPU; `graphs` is `eager` to record none."""
    world = {"WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1"}
    world |= {"MASTER_PORT": str(free_port()), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROCESS, str(run), DEVICE, graphs]
    ranks = [subprocess.Popen(command, env=os.environ | world | {"RANK": rank}, stderr=-1, text=True) for rank in "01"]
    messages = [rank.communicate()[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], messages
    refused = "cannot capture steps" in "".join(messages)
    assert refused == (graphs == "eager" and DEVICE == "cuda"), messages


@several_or_one
def test_two_processes_replay_graphs_to_the_bytes_of_eager_ones(new_run, outcome, tokens):
    settings = {"tokens_per_update": 200, "micro_batch_tokens": tokens, "precision": "bf16"}
    replayed, eager = new_run("replayed", **settings), new_run("eager", **settings)
    train_by_two(replayed, "graphs")
    train_by_two(eager, "eager")
    assert outcome(replayed) == outcome(eager)
