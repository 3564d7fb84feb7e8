import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from made_records import MACHINE
from safetensors.torch import load_file

from pipeline.cluster.local import free_port
from pipeline.config import load_run
from pipeline.core.errors import LostPeer, UserError
from pipeline.core.json_csv import read_json
from pipeline.training import validation
from pipeline.training.checkpoint import Checkpoints
from pipeline.training.distributed import Group
from pipeline.training.job import train_run
from pipeline.training.ownership import StopRequest
from pipeline.training.setup import build_trainer
from pipeline.training.specification import run_key
from pipeline.training.state import FIT_STEPS
from pipeline.training.trainer import Trainer

SHARED = {"tokens_per_update": 200, "micro_batch_tokens": 80}
"""Three micro-batches a step."""


def start(run: Path, rank: int, port: int) -> subprocess.Popen:
    """One of two processes that train `run` on this machine."""
    world = {"WORLD_SIZE": "2", "RANK": str(rank), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2"}
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    command = [sys.executable, "-m", "pipeline", "train", "--run", str(run), "--threads", "1", "--device", "cpu"]
    return subprocess.Popen(command, env=os.environ | world | address, stderr=subprocess.PIPE, text=True)


def both(run: Path) -> list[subprocess.Popen]:
    port = free_port()
    return [start(run, rank, port) for rank in range(2)]


def trainer_of(run: Path, group: Group) -> Trainer:
    """Return the trainer of one process of `group`."""
    spec, cpu = load_run(run / "run.yaml"), torch.device("cpu")
    checkpoints = Checkpoints(run, run_key(run), keep=1)
    return build_trainer(spec, checkpoints, group, cpu, MACHINE, StopRequest(), save_every_s=300)


def gradients(trainer: Trainer) -> list[torch.Tensor]:
    return [gradient.clone() for gradient in trainer.optimiser.gradients()]


def test_two_processes_clip_the_summed_gradient_as_one_process(new_run, monkeypatch):
    """An optimiser is used that, unlike Adam, depends on the length of the gradient."""
    barrier, shared = threading.Barrier(2, timeout=60), {}

    def all_reduce(tensor: torch.Tensor, async_op: bool = False) -> SimpleNamespace:
        shared[threading.current_thread().name] = tensor.clone()
        barrier.wait()
        total = sum(shared[name] for name in ("0", "1"))
        barrier.wait()
        tensor.copy_(total)
        return SimpleNamespace(wait=lambda: None)

    monkeypatch.setattr("torch.distributed.all_reduce", all_reduce)
    monkeypatch.setattr(Group, "from_first", lambda self, value, device: value)
    settings = {"clip_norm": 0.05, "optimiser": "nag", "schedule": "constant", "lr": 0.1}
    run = new_run(model={"dropout": 0.0}, **settings, **SHARED)
    alone, *both = (trainer_of(run, Group(rank, size)) for rank, size in ((0, 1), (0, 2), (1, 2)))
    found = {}

    def accumulate(trainer: Trainer) -> None:
        name = threading.current_thread().name
        found[name] = trainer.steps.accumulate(3, trainer.steps.prepare(3)).tolist(), gradients(trainer)

    threads = [threading.Thread(target=accumulate, args=(trainer,), name=str(trainer.group.rank)) for trainer in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    accumulate(alone)
    numbers, expected = found.pop(threading.current_thread().name)
    assert numbers[-1] > 0.06 and float(torch.nn.utils.get_total_norm(expected)) == pytest.approx(0.05, rel=1e-3)
    assert len(alone.steps.batches.micro_batches(3)) > 2, "each process has several micro-batches"
    for their_numbers, theirs in found.values():
        assert their_numbers == pytest.approx(numbers, rel=1e-4)
        for first, other in zip(theirs, expected, strict=True):
            torch.testing.assert_close(first, other, rtol=1e-3, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["transformer", "weighted_transformer", "recurrent", "convolutional"])
def test_two_processes_train_what_one_does_within_rounding(new_run, architecture, monkeypatch):
    """Within a twentieth of what each tensor has learnt: by Adam a weight with next to no gradient follows rounding."""
    monkeypatch.setattr(validation, "FIT_STEPS", FIT_STEPS)  # as in the processes
    alone, shared, begun = (
        new_run(name, architecture=architecture, max_steps=6, **SHARED) for name in ("alone", "shared", "begun")
    )
    first = trainer_of(begun, Group(0, 1)).model.state_dict()
    processes = both(shared)
    train_run(alone, threads=1)
    messages = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], messages
    one, two = load_file(alone / "model.safetensors"), load_file(shared / "model.safetensors")
    for name, weight in one.items():
        assert torch.dist(two[name], weight) <= 0.05 * torch.dist(weight, first[name]), name
    costs = [read_json(run / "cost.json")["total"] for run in (alone, shared)]
    assert costs[0]["tokens"] == costs[1]["tokens"] and costs[0]["flops"] == costs[1]["flops"]
    done = [read_json(run / "done.json") for run in (alone, shared)]
    for measured in ("dev", "fit"):
        assert done[0][measured]["nll_per_token"] == pytest.approx(done[1][measured]["nll_per_token"], rel=1e-5)
    assert "step 6/6" in messages[0] and "step" not in messages[1]


@pytest.mark.slow
def test_signal_to_one_process_stops_both_at_the_same_step(new_run):
    run = new_run(max_steps=3000, validate_every=3000, checkpoint_every=3000, **SHARED)
    processes = both(run)
    while not (run / "progress.jsonl").exists():
        time.sleep(0.05)
    processes[1].send_signal(signal.SIGTERM)
    messages = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [75, 75], messages
    (kept,) = (run / "checkpoints").iterdir()
    assert f"stopped after step {kept.name.split('-')[1].split('.')[0]};" in messages[0]
    processes = both(run)
    while (run / "progress.jsonl").read_text().count('"step"') < 2:
        time.sleep(0.05)
    processes[0].send_signal(signal.SIGTERM)
    messages = [process.communicate()[1] for process in processes]
    assert "resumed after step" in messages[0]
    assert [process.returncode for process in processes] == [75, 75], messages


def test_half_given_variables_are_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(UserError, match="RANK or LOCAL_RANK is missing"):
        Group.from_environment()


def test_one_process_needs_no_variables_and_exchanges_nothing(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    group = Group.from_environment()
    assert group.is_first and group.size == 1
    assert group.total([1.5, True], torch.device("cpu")) == [1.5, True]
    assert group.from_first("path", torch.device("cpu")) == "path"


@pytest.mark.parametrize("fault", [torch.distributed.DistNetworkError, torch.distributed.DistStoreError])
def test_process_that_never_joins_raises_lost_peer(fault, monkeypatch):
    def wait(*_, **__):
        raise fault("timed out: clients joined 1/2")

    monkeypatch.setattr(torch.distributed, "init_process_group", wait)
    with (
        pytest.raises(LostPeer, match="another process of this training died or hung"),
        Group(0, 2).connected(torch.device("cpu")),
    ):
        pass
