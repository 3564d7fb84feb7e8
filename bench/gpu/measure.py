"""Measure every case on the GPU of this machine, next to what was counted without one.

    PYTHONPATH=.:tests/helpers:tests/gpu python bench/gpu/measure.py [--only CASE …] [--device cpu] [--csv FILE]

Each variant of a case prints one line: eager or replayed as a CUDA graph, plain or with compiled layers or Triton
kernels. Of a training by several processes, one process is measured alone, without the all-reduce. A line has kernel
launches, counted (budgets.csv) and seen by torch's profiler. It also has milliseconds, forecast for an H100 and
measured (minimum and median), and peak memory in GiB. The case "plain PyTorch" is a rival of "base, 1 GPU": the same
sizes without this project's code. Cases "operator: …" time several implementations of one operator.

A variant fails if its results differ from those of the first variant of its case (agreement.py). The others still run,
but the exit status is 1. The CSV file gets a row as soon as a variant is measured.
"""

import argparse
import contextlib
import csv
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import decodings
import operators
import torch
import trainings
from agreement import ROUNDED, SEARCHED, WITH_DROPOUT, Results, check_agreement
from cases import DECODINGS, MEASURED, SEARCHES, TRAININGS, Case, Decoding
from compiled_layers import CompiledSteps
from plain_transformer import plain_step
from torch.profiler import ProfilerActivity, profile

from pipeline.core.errors import UserError
from pipeline.models import kernels
from pipeline.training.captured_steps import CapturedSteps
from pipeline.training.graph_cache import CudaRecorder
from pipeline.training.machine import choose_device, prepare
from pipeline.training.step import AsyncScalars, PreparedStep, StepRunner

WARM, BLOCK, BLOCKS = 4, 8, 3
SEED = 3
TOLERANCES = WITH_DROPOUT | ROUNDED | SEARCHED
MOST_KERNELS = 25
TABLE = (Path(__file__).parents[2] / "tests/gpu/budgets.csv").read_text(encoding="utf-8")
BUDGETS = {row.pop("case"): row for row in csv.DictReader(TABLE.splitlines())}


class TimedSteps(StepRunner):
    """Steps that call `clock` before each, and let it keep the last warm one's loss and gradient norm."""

    def run(self, step: int, prepared: PreparedStep, annealings: int) -> AsyncScalars:
        self.clock(step)
        scalars = super().run(step, prepared, annealings)
        if step == WARM - 1:
            loss, *_, norm = scalars.values
            self.clock.keep(step, {"losses": [torch.tensor(loss)], "gradient norms": [torch.tensor(norm)]})
        return scalars


class Clock:
    """Called before each of a case's repetitions: times blocks of them when warm, and counts what the last launches.

    Args:
        device: Where the case runs.
        timed: False ends the case when it is warm.
    """

    block = BLOCK
    """Repetitions of a block."""

    def __init__(self, device: torch.device, timed: bool = True):
        self.device, self.timed, self.moments, self.launches = device, timed, [], 0
        self.results: Results = {}
        """The results of the last warm repetition, on the CPU."""
        self.kernels: list[tuple[float, int, str]] = []
        """Milliseconds in all, how often, and name of each kernel of the last repetition."""
        self.seen = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])

    def keep(self, step: int, results: Results | None) -> None:
        """Keep what a repetition computed, if it is the last warm one."""
        if step == WARM - 1 and results:
            self.results = {name: [value.cpu() for value in values] for name, values in results.items()}

    def __call__(self, step: int) -> None:
        if step == WARM and not self.timed:
            raise StopIteration
        block, rest = divmod(step - WARM, self.block)
        if 0 <= block <= BLOCKS and not rest:
            if self.device.type == "cuda":
                torch.cuda.synchronize()
            self.moments.append(time.perf_counter())
        if (block, rest) == (BLOCKS, 0):
            self.seen.start()
        elif block >= BLOCKS:
            if self.device.type == "cuda":
                torch.cuda.synchronize()
            self.seen.stop()
            events = self.seen.key_averages()
            self.launches = sum(event.count for event in events if "LaunchKernel" in event.key)
            self.kernels = [
                (event.self_device_time_total / 1e3, event.count, event.key)
                for event in events
                if event.device_type == torch.autograd.DeviceType.CUDA
            ]
            raise StopIteration

    @property
    def milliseconds(self) -> list[float]:
        return [1e3 * (after - before) / self.block for before, after in pairwise(self.moments)]


Run = Callable[[Case, torch.device, Clock], None]


def train(case: Case, device: torch.device, clock: Clock) -> None:
    trainer = trainings.trainer_of(TimedSteps, case, device)
    trainer.steps.clock = clock
    trainer.train()


def train_by_graphs(
    case: Case, device: torch.device, clock: Clock, capturing: type[CapturedSteps] = CapturedSteps
) -> None:
    """Replay steps captured by a class."""
    trainer = trainings.trainer_of(TimedSteps, case, device, CudaRecorder(device), capturing)
    trainer.steps.clock = clock
    try:
        trainer.train()
    finally:
        if failure := trainer.steps.captured.graphs.failure:
            raise RuntimeError(failure)


def train_by_triton(case: Case, device: torch.device, clock: Clock) -> None:
    """Replay steps of Triton kernels, which REPRISE_GPU_KERNELS need not turn on here."""
    with mock.patch.object(kernels, "triton_asked_for", lambda: True):
        train_by_graphs(case, device, clock)


def train_as_one_of_several(case: Case, device: torch.device, clock: Clock) -> None:
    """Replay steps as one of several processes does; the sum over processes takes no time."""
    with mock.patch.object(torch.distributed, "all_reduce", lambda tensor: None):
        train_by_graphs(replace(case, ranks=RANKS), device, clock)


def decode(case: Case, device: torch.device, clock: Clock) -> None:
    assert isinstance(case, Decoding)
    repeat(decodings.searching(case, device), clock)


def search_whole(case: Case, device: torch.device, clock: Clock, graphs: bool) -> None:
    """Search by graphs or eagerly."""
    assert isinstance(case, Decoding)
    repeat(decodings.whole_search(case, device, CudaRecorder(device) if graphs else None), clock)


def repeat(work: Callable[[], Results | None], clock: Clock) -> None:
    for step in count():
        clock(step)
        clock.keep(step, work())


RIVAL = "plain PyTorch"
RIVALS: dict[str, Run] = {
    RIVAL: lambda _, device, clock: repeat(plain_step(device, compiled=False), clock),
    f"{RIVAL}, compiled": lambda _, device, clock: repeat(plain_step(device, compiled=True), clock),
}
CASES = {**TRAININGS, **MEASURED, **DECODINGS, **SEARCHES}
CASES |= dict.fromkeys([RIVAL, *operators.FAMILIES], TRAININGS["base, 1 GPU"])


COMPILED = ("base, 8 GPUs", "base, 1 GPU", "big, 1 GPU", "Weighted Transformer, 1 GPU")
"""Cases whose layers are compiled, too."""
TRITON = (*COMPILED, "Weighted Transformer", "tiny Transformer")
"""Cases that are computed by Triton kernels, too."""
RANKS = 8
SEVERAL = tuple(name for name, case in TRAININGS.items() if case.ranks == RANKS)
"""Cases of several processes."""


def ways(name: str, device: torch.device) -> dict[str, Run]:
    """Return how a case is run, by what the table calls it; the others have to agree with the first."""
    if name == RIVAL:
        return RIVALS
    if name in operators.FAMILIES:
        forms = operators.FAMILIES[name](device)
        return {form: lambda _, __, clock, work=work: repeat(work, clock) for form, work in forms.items()}
    if name in DECODINGS:
        return {name: decode}
    if name in SEARCHES:
        found = {name: partial(search_whole, graphs=False)}
        return found | ({f"{name}, graphs": partial(search_whole, graphs=True)} if device.type == "cuda" else {})
    found = {name: train}
    if device.type == "cuda":
        found[f"{name}, graphs"] = train_by_graphs
        if name in COMPILED:
            found[f"{name}, graphs, compiled layers"] = partial(train_by_graphs, capturing=CompiledSteps)
        if name in SEVERAL:
            found[f"{name}, graphs, one of several"] = train_as_one_of_several
        if name in TRITON:
            found[f"{name}, graphs, Triton kernels"] = train_by_triton
    return found


def clocked(run: Run, case: Case, device: torch.device, timed: bool) -> Clock:
    """Run a case in one way, from the same weights on the same data as in each other way."""
    clock = Clock(device, timed)
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    torch.manual_seed(SEED)
    with contextlib.suppress(StopIteration):
        run(case, device, clock)
    return clock


def figures_of(clock: Clock, device: torch.device) -> dict[str, Any]:
    memory = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0
    return {
        "launches": str(clock.launches),
        "ms": f"{min(clock.milliseconds):.2f}",
        "median ms": f"{statistics.median(clock.milliseconds):.2f}",
        "GiB": f"{memory:.2f}",
        "kernels": [f"{spent:.3f} ms, {times} times: {key[:110]}" for spent, times, key in sorted(clock.kernels)[::-1]],
    }


def measure_case(
    name: str, device: torch.device, kernels: int, rows: Path | None, only_graphs: bool
) -> dict[str, dict[str, Any]]:
    """Print a line for each way to run a case, and return the figures, or the `failure`, of each.

    Args:
        kernels: How many of the kernels that take longest are named.
        rows: CSV file to append to.
        only_graphs: Time no way without graphs where there is one with graphs.
    """
    case, found = CASES[name], {}
    first, expected = "", None
    speech = trainings.spec_of(case.system).model.reads == "speech"
    forms = ways(name, device)
    timed = {title for title in forms if "graphs" in title} if only_graphs else set()
    for title, run in forms.items():
        prepare(device, 1, strict=not speech and name not in (*RIVALS, *operators.FAMILIES))
        try:
            clock = clocked(run, replace(case, ranks=1), device, timed=not timed or title in timed)
            if expected is None:
                first, expected = title, clock.results
            check_agreement(title, clock.results, first, expected, TOLERANCES)
        except Exception as error:  # the others can be measured all the same
            print(f"| {title} | failed: {type(error).__name__}: {str(error)[:300]} |", flush=True)
            found[title] = {"failure": f"{type(error).__name__}: {str(error)[:300]}"}
            append_row(rows, device, title, found[title])
            continue
        if not clock.timed:
            continue
        own = figures_of(clock, device)
        counted = BUDGETS.get(title, {"launches": "", "ms H100": ""})
        figures = counted["launches"], own["launches"], counted["ms H100"], own["ms"], own["median ms"], own["GiB"]
        print(f"| {title} | {' | '.join(figures)} |", flush=True)
        print(*own["kernels"][:kernels], sep="\n", end="\n" if kernels else "", flush=True)
        append_row(rows, device, title, own)
        found[title] = own | {"kernels": own["kernels"][:MOST_KERNELS]}
    return found


def append_row(path: Path | None, device: torch.device, title: str, figures: dict[str, Any]) -> None:
    """Append what was measured to a CSV file, synced to disk, so that a process that dies loses nothing."""
    if path is None:
        return
    columns = ["machine", "torch", "case", "ms", "median ms", "launches", "GiB", "failure"]
    machine = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    fixed = {"machine": machine, "torch": torch.__version__, "case": title}
    with path.open("a", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        if not file.tell():
            table.writeheader()
        table.writerow(fixed | figures)
        file.flush()
        os.fsync(file.fileno())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=[*CASES], metavar="CASE", help="(default: all)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--kernels", type=int, default=0, metavar="N", help="name the N slowest kernels")
    parser.add_argument("--block", type=int, default=BLOCK, help="repetitions in a timed block")
    parser.add_argument("--only-graphs", action="store_true", help="omit eager variants of cases that have graphs")
    parser.add_argument("--csv", type=Path, help="file to append the figures of each variant to")
    parser.add_argument("--json", type=Path, help="file for the figures, written after each case")
    args = parser.parse_args()
    Clock.block = args.block
    try:
        device = choose_device(args.device, local_rank=0)
    except UserError as error:
        parser.error(str(error))
    print("| case | launches, counted | seen | ms, forecast for an H100 | least | median | GiB |\n|---|" + "---:|" * 6)
    found: dict[str, dict[str, Any]] = {}
    complete = True
    for name in args.only or CASES:
        of_case = measure_case(name, device, args.kernels, args.csv, args.only_graphs)
        complete &= not any("failure" in figures for figures in of_case.values())
        found |= of_case
        if args.json:
            args.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    sys.exit(not complete)


if __name__ == "__main__":
    main()
