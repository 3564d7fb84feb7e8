"""Inject faults into every stage: each case must end in the bytes of an undisturbed run, or in one clear error line.

python -m qa.chaos --minutes 90 [--seed 7]        as many cases as fit
python -m qa.chaos --seed 7 --case 123            repeat one of them and keep its files
"""

import argparse
import itertools
import os
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

from pipeline.core.artifacts import Artifact
from qa.chaos.cases import FAILURES, IN_VAIN, LOST, NOT_MET, REFUSED, SAME, TRACEBACK, Case, End, Judge, draw
from qa.chaos.injection import Injector
from qa.chaos.server import Server
from qa.chaos.world import TARGETS, World

COLUMNS = (NOT_MET, SAME, REFUSED, LOST, IN_VAIN, TRACEBACK)


def main() -> int:
    """Run the cases and return the exit status: 1 if a case failed."""
    parser = argparse.ArgumentParser(prog="python -m qa.chaos", description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=90)
    parser.add_argument("--cases", type=int, default=1 << 30, help="maximum number of cases")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--case", type=int, help="run only the case with this number")
    parser.add_argument("--world", type=Path, help="folder that keeps the undisturbed project for later calls")
    args = parser.parse_args()
    print(f"chaos with SEED={args.seed}", flush=True)
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as scratch:
        folder = args.world or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        os.environ["PATH"] = path_without_git(folder)
        numbers = range(1, args.cases + 1) if args.case is None else [args.case]
        ends = run(folder.resolve(), args.seed, numbers, args.minutes * 60)
    print(table(ends))
    return int(any(end.verdict in FAILURES for _, end in ends))


def path_without_git(folder: Path) -> str:
    """Return a PATH whose git fails, so that a commit made during the cases does not change the provenance."""
    program = folder.resolve() / "no-git" / "git"
    program.parent.mkdir(exist_ok=True)
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


def run(
    folder: Path, seed: int, numbers, seconds: float, targets: tuple[Artifact, ...] = TARGETS
) -> list[tuple[Case, End]]:
    """Run the cases of some numbers until the time is over, and print each that fails."""
    injector = Injector(folder)
    server = Server(injector.environment())
    ends: list[tuple[Case, End]] = []
    try:
        world = World(folder, injector, server, targets)
        world.build()
        print(f"{len(world.steps)} commands of {len({step.stage for step in world.steps})} stages", flush=True)
        judge, until = Judge(world, seed), time.monotonic() + seconds
        for number in itertools.takewhile(lambda _: time.monotonic() < until, numbers):
            case = draw(world.steps, seed, number)
            ends.append((case, judge.end_of(case)))
            if ends[-1][1].verdict in FAILURES or len(numbers) == 1:
                print(f"\n{case}\n  {ends[-1][1].verdict}: {ends[-1][1].why}", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    finally:
        server.close()
    return ends


def table(ends: list[tuple[Case, End]]) -> str:
    """Return a table of how many cases each stage had, and how they ended."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for case, end in ends:
        for row in ("snakemake" if case.kind == "workflow killed" else case.step.stage, "all"):
            counts[row][end.verdict] += 1
    lines = [f"{'':20}{'tried':>8}" + "".join(f"{name:>17}" for name in COLUMNS)]
    for stage in sorted(counts, key=lambda name: (name == "all", name)):
        found = counts[stage]
        lines.append(f"{stage:20}{found.total():8}" + "".join(f"{found[name]:17}" for name in COLUMNS))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
