import logging
import multiprocessing
import os
import re
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from forked_ranks import fork_ranks
from run_folders import json_lines
from safetensors.torch import load_file

from pipeline.core.errors import LostPeer, UserError
from pipeline.core.json_csv import read_json
from pipeline.training import checkpoint, distributed, job
from pipeline.training.distributed import Group
from pipeline.training.job import train_run
from pipeline.training.step import StepRunner
from pipeline.training.trainer import Trainer

SHARED = {"tokens_per_update": 200, "micro_batch_tokens": 80}
"""Three micro-batches a step."""


def test_half_given_variables_are_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(UserError, match="RANK or LOCAL_RANK is missing"):
        Group.from_environment()


@pytest.mark.parametrize("size", [1, 2])
def test_stored_buffers_are_those_of_the_first_process(monkeypatch, size):
    sent, model = Mock(), torch.nn.BatchNorm1d(3)
    stored = [*model.buffers()]
    model.register_buffer("mask", torch.ones(1), persistent=False)
    monkeypatch.setattr(torch.distributed, "broadcast", sent)
    Group(size=size).share_buffers(model)
    assert [id(args[0]) for args, how in sent.call_args_list if how == {"src": 0}] == [*map(id, stored)] * (size - 1)


def meet_in(store: torch.distributed.Store, fault: Exception | None, url: str, rank: int, size: int, timeout):
    """Stand for torch's rendezvous, whose generator may raise a fault."""
    if fault:
        raise fault
    assert (url, timeout) == ("env://", distributed.JOINED_WITHIN)
    yield store, rank, size


@pytest.mark.parametrize("fault", [torch.distributed.DistNetworkError, torch.distributed.DistStoreError])
@pytest.mark.parametrize("late", ["rendezvous", "await_all", "init_process_group"])
def test_process_that_never_joins_raises_lost_peer(fault, late, monkeypatch):
    error, store = fault("timed out: clients joined 1/2"), torch.distributed.HashStore()
    meet = partial(meet_in, store, error if late == "rendezvous" else None)
    monkeypatch.setattr(torch.distributed, "rendezvous", meet)
    monkeypatch.setattr(torch.distributed, "init_process_group", Mock(side_effect=error))
    if late == "await_all":
        monkeypatch.setattr(distributed, "JOINED_WITHIN", timedelta(seconds=0.1))
    else:
        store.add("joined", 1)
    with (
        pytest.raises(LostPeer, match="another process of this training died or hung"),
        Group(0, 2).connected(torch.device("cpu")),
    ):
        pass


def test_all_wait_for_the_last_to_connect_and_then_less(monkeypatch):
    """The first process of a node copies the corpus before it connects."""
    store, begin = torch.distributed.HashStore(), Mock()
    store.set_timeout(timedelta(seconds=0.1))
    monkeypatch.setattr(distributed, "JOINED_WITHIN", timedelta(seconds=60))
    monkeypatch.setattr(torch.distributed, "rendezvous", partial(meet_in, store, None))
    monkeypatch.setattr(torch.distributed, "init_process_group", begin)

    def connect(rank: int) -> None:
        with Group(rank, 3).connected(torch.device("cpu")):
            pass

    with ThreadPoolExecutor(3) as pool:
        early = [pool.submit(connect, rank) for rank in (0, 1)]
        assert not wait(early, timeout=0.5).done
        for process in (*early, pool.submit(connect, 2)):
            process.result()
    assert [call.kwargs["timeout"] for call in begin.mock_calls] == [distributed.TIMEOUT] * 3
    assert store.timeout == distributed.TIMEOUT


def test_the_corpus_is_copied_before_connecting(new_run, monkeypatch):
    copy = Mock()
    monkeypatch.setattr(job, "stage_in", copy)
    monkeypatch.setattr(Group, "connected", lambda *_: copy.assert_called_once() or nullcontext())
    train_run(new_run(max_steps=1, validate_every=1), threads=1)
    copy.assert_called_once()


FAILED = 3
"""Exit code after a UserError."""


def by_forks(
    run: Path, size: int, at_step: Callable[[int, int], None] = lambda rank, step: None, lost: int | None = None
) -> list[int]:
    """Train `run` by forked processes and return their exit codes; each logs to `log.RANK`.

    Args:
        run: Folder of the run.
        size: Number of processes.
        at_step: Called in each process with its rank and each step.
        lost: Rank of a process that may hang; it is killed once all others have ended.
    """

    def train(rank: int) -> None:
        accumulate = StepRunner.accumulate
        StepRunner.accumulate = lambda self, step, prepared: at_step(rank, step) or accumulate(self, step, prepared)
        logging.basicConfig(filename=run / f"log.{rank}", level="INFO", force=True)
        try:
            train_run(run, device="cpu", threads=1)
        except UserError as error:
            logging.error(error)
            raise SystemExit(FAILED) from error

    children = fork_ranks(size, train)
    deadline, codes = time.monotonic() + 300, {}
    while len(codes) < size and time.monotonic() < deadline:
        for child in children:
            if child not in codes and (ended := os.waitpid(child, os.WNOHANG))[0]:
                codes[child] = os.waitstatus_to_exitcode(ended[1])
        if lost is not None and set(children) - set(codes) == {children[lost]}:
            os.kill(children[lost], signal.SIGKILL)
        time.sleep(0.05)
    return [codes[child] for child in children]


def assert_same_cost(run: Path, other: Path) -> None:
    costs = [read_json(folder / "cost.json")["total"] for folder in (run, other)]
    assert costs[0]["tokens"] == costs[1]["tokens"] and costs[0]["flops"] == costs[1]["flops"]


@pytest.mark.slow
def test_signal_to_one_process_stops_both_at_the_same_step(new_run):
    run = new_run(max_steps=30, validate_every=30, checkpoint_every=30, **SHARED)
    for signalled in ((1, 3), (0, 15)):  # rank and step

        def stop(*now: int, signalled=signalled) -> None:
            if now == signalled:
                os.kill(os.getpid(), signal.SIGTERM)

        assert by_forks(run, 2, stop) == [75, 75]
    ends = re.findall(r"(?:stopped|resumed) after step \d+", (run / "log.0").read_text())
    assert ends == ["stopped after step 4", "resumed after step 4", "stopped after step 16"]


@pytest.mark.slow
def test_four_processes_clip_and_match_one_with_many_buckets(new_run, train, monkeypatch):
    """The summed gradient is clipped, by an optimiser that, unlike Adam, depends on the length of the gradient."""
    settings = SHARED | {"tokens_per_update": 800, "max_steps": 4, "validate_every": 4}
    settings |= {"clip_norm": 0.05, "optimiser": "nag", "schedule": "constant", "lr": 0.1}
    alone, shared = train("alone", **settings), new_run("shared", **settings)
    monkeypatch.setattr(distributed, "BUCKET_BYTES", 2000)
    assert by_forks(shared, 4) == [0] * 4
    one, two = load_file(alone / "model.safetensors"), load_file(shared / "model.safetensors")
    torch.testing.assert_close(two, one, rtol=1e-4, atol=1e-5)
    norms = [json_lines(run / "progress.jsonl")[0]["gradient_norm"] for run in (alone, shared)]
    assert norms[0] > 0.05 and norms[1] == pytest.approx(norms[0], rel=1e-4)
    assert_same_cost(alone, shared)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["transformer", "weighted_transformer", "recurrent", "convolutional"])
def test_two_processes_train_what_one_does_within_rounding(new_run, train, trainer_of, architecture):
    """Within a twentieth of what each tensor has learnt: by Adam a weight with next to no gradient follows rounding."""
    settings = {"architecture": architecture, "max_steps": 6} | SHARED
    alone, shared, begun = train("alone", **settings), new_run("shared", **settings), new_run("begun", **settings)
    first = trainer_of(begun).model.state_dict()
    assert by_forks(shared, 2) == [0, 0]
    one, two = load_file(alone / "model.safetensors"), load_file(shared / "model.safetensors")
    for name, weight in one.items():
        assert torch.dist(two[name], weight) <= 0.05 * torch.dist(weight, first[name]), name
    assert_same_cost(alone, shared)
    done = [read_json(run / "done.json") for run in (alone, shared)]
    for measured in ("dev", "fit", "train"):
        assert done[0][measured]["nll_per_token"] == pytest.approx(done[1][measured]["nll_per_token"], rel=1e-5)
    assert "step 6/6" in (shared / "log.0").read_text() and "step" not in (shared / "log.1").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("end", [lambda: os._exit(1), lambda: time.sleep(600)], ids=["dies", "hung"])
def test_peers_fail_when_a_process_ends_and_the_restart_resumes(new_run, monkeypatch, end):
    """Number 1 of four processes ends or hangs in step 3; number 3 is no neighbour of it."""
    monkeypatch.setattr(distributed, "TIMEOUT", distributed.TIMEOUT / 40)
    run = new_run(max_steps=6, validate_every=6, checkpoint_every=2, **SHARED)
    codes = by_forks(run, 4, lambda rank, step: end() if (rank, step) == (1, 3) else None, lost=1)
    assert codes.count(FAILED) == 3, codes
    for rank in (0, 2, 3):
        assert "another process of this training died or hung" in (run / f"log.{rank}").read_text()
    train_run(run, threads=1)
    assert read_json(run / "done.json")["steps"] == 6


@pytest.mark.slow
def test_processes_roll_back_once_the_weights_are_written(new_run, monkeypatch):
    """The second one looks for them before the first writes."""
    write, validate, roll_back = checkpoint.write_tensor_file, Trainer.validate, Trainer.roll_back
    second = multiprocessing.Event()

    def write_late(path: Path, tensors, metadata) -> None:
        if path.name == "step-4.safetensors":
            assert second.wait(60)
            time.sleep(0.3)  # in which the second would look
        write(path, tensors, metadata)

    def announce(self, fault: str) -> None:
        if not self.group.is_first:
            second.set()
        roll_back(self, fault)

    def fail_once(self) -> str | None:
        return "a fault" if self.state.step == 8 and not self.state.returned else validate(self)

    monkeypatch.setattr(checkpoint, "write_tensor_file", write_late)
    monkeypatch.setattr(Trainer, "roll_back", announce)
    monkeypatch.setattr(Trainer, "validate", fail_once)
    run = new_run(validate_every=4, checkpoint_every=4, **SHARED)
    assert by_forks(run, 2) == [0, 0]
    assert read_json(run / "done.json")["returned"] == {"at": 8, "to": 4}
