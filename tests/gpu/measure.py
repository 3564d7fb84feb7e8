"""Do every case on the GPU of this machine and print what it took, beside what was counted without one.

    PYTHONPATH=.:tests/helpers python tests/gpu/measure.py [--only CASE …] [--device cpu]

One line a case: launches, counted (budgets.csv) and seen by torch's profiler; milliseconds, forecast for an H100 and
measured, the least of a few and their median; GiB of memory at most. Of several processes it is one alone. A case that
fails does not end the others, but the exit status is 1 then.
"""

import argparse
import contextlib
import csv
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path

import decodings
import torch
import trainings
from cases import DECODINGS, TRAININGS, Case, Decoding
from torch.profiler import ProfilerActivity, profile

from pipeline.core.errors import UserError
from pipeline.training.machine import choose_device, prepare
from pipeline.training.updates import Numbers, Update

WARM, BLOCK, BLOCKS = 4, 8, 3
TABLE = (Path(__file__).parent / "budgets.csv").read_text(encoding="utf-8")
BUDGETS = {row.pop("case"): row for row in csv.DictReader(TABLE.splitlines())}


class Timed(trainings.UpdatesAlone):
    """Calls `at` before each update."""

    def do(self, step: int, update: Update) -> Numbers:
        self.at(step)
        return super().do(step, update)


class Clock:
    """Called before each of a case's repetitions: times blocks of them when warm, and counts what the last launches."""

    def __init__(self, device: torch.device):
        self.device, self.moments, self.launches = device, [], 0
        self.seen = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])

    def __call__(self, step: int) -> None:
        block, rest = divmod(step - WARM, BLOCK)
        if 0 <= block <= BLOCKS and not rest:
            if self.device.type == "cuda":
                torch.cuda.synchronize()
            self.moments.append(time.perf_counter())
        if (block, rest) == (BLOCKS, 0):
            self.seen.start()
        elif block == BLOCKS:
            self.seen.stop()
            self.launches = sum(event.count for event in self.seen.key_averages() if "LaunchKernel" in event.key)
            raise StopIteration

    @property
    def milliseconds(self) -> list[float]:
        return [1e3 * (after - before) / BLOCK for before, after in pairwise(self.moments)]


def train(case: Case, device: torch.device, clock: Clock) -> None:
    trainer = trainings.trainer_of(Timed, case, device)
    trainer.at = clock
    trainer.train()


def decode(case: Decoding, device: torch.device, clock: Clock) -> None:
    search = decodings.searching(case, device)
    for step in count():
        clock(step)
        search()


def measured(do: Callable[[Case, torch.device, Clock], None], case: Case, device: torch.device) -> dict[str, str]:
    clock = Clock(device)
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    with contextlib.suppress(StopIteration):
        do(case, device, clock)
    memory = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0
    return {
        "launches": str(clock.launches),
        "ms": f"{min(clock.milliseconds):.2f}",
        "median ms": f"{statistics.median(clock.milliseconds):.2f}",
        "GiB": f"{memory:.2f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=[*TRAININGS, *DECODINGS], metavar="CASE", help="(default: all)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    args = parser.parse_args()
    try:
        device = choose_device(args.device, local_rank=0)
    except UserError as error:
        parser.error(str(error))
    print("| case | launches, counted | seen | ms, forecast for an H100 | least | median | GiB |\n|---|" + "---:|" * 6)
    failed = False
    for name, case in {**TRAININGS, **DECODINGS}.items():
        if args.only and name not in args.only:
            continue
        speech = trainings.spec_of(case.system).model.reads == "speech"
        prepare(device, 1, strict=not speech)
        try:
            own = measured(decode if isinstance(case, Decoding) else train, replace(case, ranks=1), device)
        except Exception as error:  # the others can be measured all the same
            print(f"| {name} | failed: {type(error).__name__}: {str(error)[:300]} |", flush=True)
            failed = True
            continue
        counted = BUDGETS[name]
        figures = counted["launches"], own["launches"], counted["ms H100"], own["ms"], own["median ms"], own["GiB"]
        print(f"| {name} | {' | '.join(figures)} |", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
