"""Cases: one fault in one stage, drawn by a seed and a number, and its outcome."""

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from qa.chaos.damage import DAMAGES, POISONS, is_text
from qa.chaos.injection import CALLS, ERRORS, EVER, KILL, PASSING, Fault
from qa.chaos.killed_workflow import end_of_killed_workflow
from qa.chaos.server import OVER_TIME
from qa.chaos.world import Digests, Step, World, digests

SAME, REFUSED, LOST, IN_VAIN, TRACEBACK = "same bytes", "refused", "lost", "refused in vain", "tracebacks"
NOT_MET = "not met"
"""Message of a fault that did not happen: the stage made fewer calls than in the undisturbed run."""
FAILURES = (LOST, IN_VAIN, TRACEBACK)
KINDS = {"passing": 3, "once": 2, "lasting": 3, "at random": 2, "kill": 3, "damage": 4, "poison": 1}
"""Kinds of faults, with weights."""


WORKFLOW_EVERY = 100
"""Number of cases among which one concerns Snakemake as a whole, which takes as long as twenty others."""


@dataclass(frozen=True)
class Case:
    """One fault in `step`.

    Attributes:
        fault: Fault at a system call.
        spoilt: A file that the step reads, and its damage.
    """

    number: int
    kind: str
    step: Step
    fault: Fault | None = None
    spoilt: str | None = None
    damage: str = ""

    def __str__(self) -> str:
        what = f"{self.damage}: {self.spoilt}" if self.spoilt else str(self.fault or "snakemake")
        return f"case {self.number}: {self.step.stage}: {self.kind}: {what}"


@dataclass(frozen=True)
class End:
    """The outcome of a case, with its reason."""

    verdict: str
    why: str = ""


def draw(steps: list[Step], seed: int, number: int) -> Case:
    """Draw the case of a number; every stage is as likely as any other."""
    rng = random.Random(f"chaos {seed} {number}")
    trained = [step for step in steps if step.stage == "train" and "/weighted/C/" in step.argv[2]]
    if trained and number % WORKFLOW_EVERY == 0:
        return Case(number, "workflow killed", trained[0])
    stage = rng.choice(sorted({step.stage for step in steps}))
    step = rng.choice([step for step in steps if step.stage == stage])
    kind = rng.choices([*KINDS], [*KINDS.values()])[0]
    if kind == "damage" and (files := [path for path in step.reads if not path.startswith("work/mirror")]):
        return Case(number, kind, step, spoilt=rng.choice(files), damage=rng.choice([*DAMAGES]))
    if kind == "poison" and (poisoned := draw_poison(step, rng)):
        return Case(number, kind, step, spoilt=poisoned[0], damage=poisoned[1])
    kind = kind if kind not in ("damage", "poison") else "passing"
    return Case(number, kind, step, fault=draw_fault(step, kind, rng))


def draw_poison(step: Step, rng: random.Random) -> tuple[str, str] | None:
    """Return file and damage for a stage that reads text of users."""
    name = rng.choice([*POISONS])
    end = POISONS[name][0]
    data = [path for path in step.reads if "/raw/" in path or "/wav/" in path or "/prepared/" in path or end]
    fitting = [path for path in data if path.endswith(end) and (end or is_text(Path(path)))]
    return (rng.choice(fitting), name) if fitting else None


def draw_fault(step: Step, kind: str, rng: random.Random) -> Fault:
    call = rng.choice([call for call in CALLS if step.seen[call]])
    at = rng.randint(1, step.seen[call])
    match kind:
        case "passing":
            return Fault(call, rng.choice([error for error in ERRORS[call] if error in PASSING]), at)
        case "once":
            return Fault(call, rng.choice(ERRORS[call]), at, times=rng.randint(1, 2))
        case "lasting":
            return Fault(call, rng.choice(ERRORS[call]), at, EVER)
        case "at random":
            seed, rate = rng.randrange(1 << 30), rng.choice([10_000, 100_000, 500_000])
            return Fault(call, rng.choice(ERRORS[call]), 0, EVER, seed, rate)
    return Fault(call, KILL, at)


class Judge:
    """A runner of cases in a world."""

    def __init__(self, world: World, seed: int):
        self.world, self.seed = world, seed
        self.golden = digests(world.golden)

    def end_of(self, case: Case) -> End:
        """Let a case happen, remove its cause, and run the same command again."""
        if case.kind == "workflow killed":
            return self.end_of_workflow(case)
        folder = self.world.before(case.step, "scratch")
        if case.spoilt:
            self.spoil(folder / case.spoilt, case)
        status = self.world.run(case.step, folder, case.fault)
        said, met = self.world.said(), not case.fault or self.world.injector.page.injected
        if fault := self.fault_of(folder, case, status, said):
            return fault
        if status == 0:
            if case.kind == "poison":
                return End(SAME, "left out")  # and counted, which the tests of these stages look at
            return self.compared(folder, case, SAME if met else NOT_MET, "")
        if case.kind == "passing":
            return End(IN_VAIN, said[-600:])
        if case.spoilt:
            shutil.copy(self.world.golden / case.spoilt, folder / case.spoilt)
        if self.world.run(case.step, folder, None):
            return End(LOST, f"the same command again: {self.world.said()[-600:]}")
        return self.compared(folder, case, SAME if status == -9 else REFUSED, said)

    def end_of_workflow(self, case: Case) -> End:
        rng, folder = random.Random(f"chaos {self.seed} {case.number} kills"), self.world.folder / "workflow"
        shutil.rmtree(folder, ignore_errors=True)
        weights = str(Path(case.step.argv[2]) / "model.safetensors")
        digest, said = end_of_killed_workflow(self.world.template, folder, Path(weights), rng)
        return End(SAME) if digest == case.step.writes[weights] else End(LOST, said[-3000:])

    def spoil(self, path: Path, case: Case) -> None:
        change: Callable = DAMAGES[case.damage] if case.kind == "damage" else POISONS[case.damage][1]
        content = path.read_bytes()
        if content:
            path.write_bytes(change(content, random.Random(f"chaos {self.seed} {case.number} content")))

    def fault_of(self, folder: Path, case: Case, status: int, said: str) -> End | None:
        """Return the fault in how a command ended; an empty string if there is none."""
        if "Traceback (most recent call last)" in said:
            return End(TRACEBACK, said[-1500:])
        if status == OVER_TIME:
            return End(LOST, f"it does not end: {said[-600:]}")
        if status not in (0, -9) and not last_line(said).startswith("error: "):
            return End(LOST, f"status {status} without an error line at the end: {said[-600:]}")
        own = {*case.step.writes, *case.step.unlike, case.spoilt}
        found = digests(folder)
        if gone := sorted(
            path for path, digest in self.golden.items() if path not in own and found.get(path) != digest
        ):
            return End(LOST, f"{gone[0]} is gone or another: {said[-600:]}")
        return None

    def compared(self, folder: Path, case: Case, verdict: str, why: str) -> End:
        found: Digests = digests(folder)
        others = [path for path, digest in case.step.writes.items() if found.get(path) != digest]
        if others:
            return End(LOST, f"other bytes in {', '.join(others[:4])}: {self.world.said()[-300:]}")
        return End(verdict, why)


def last_line(said: str) -> str:
    return said.rstrip("\n").rpartition("\n")[2]
