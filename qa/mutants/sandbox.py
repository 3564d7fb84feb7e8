"""A copy of the project in which tests run over changed files."""

import hashlib
import json
import math
import os
import signal
import sys
import time
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from copied import update_copy
from fork import run_tests, waited, warm
from served import Served
from traced import Traced

RESULTS = "docs/measured/mutants.csv"
"""The table that `run.py` writes; no test reads it."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of some tests: `noticed`, with the test, `timeout`, or `survived`."""

    result: str
    by: str
    seconds: float


@dataclass(frozen=True)
class Traces:
    """Observations of one run of the tests.

    Attributes:
        lines: Tests by file and line; the test is empty for lines that ran on import.
        seconds: Duration of each test, in the order in which they ran.
        failed: Tests that fail without any change.
    """

    lines: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]
    failed: list[str]

    def on_import(self, file: str, line: int) -> bool:
        return "" in self.lines.get(file, {}).get(line, ())

    def tests_of(self, file: str, line: int, own: tuple[str, ...] = (), most: float = math.inf) -> list[str]:
        """Return the tests that run a line, or its file if it runs on import.

        Tests of the package come first, among them quick tests of quick files.

        Args:
            file: File of the line.
            line: Number of the line.
            own: Paths of the tests of the file's package.
            most: Seconds that the tests may take together.
        """
        by_line = self.lines.get(file, {})
        found = set(by_line.get(line, ()))
        if "" in found:
            found = {test for tests in by_line.values() for test in tests}
        chosen = (found - {""}) & self.seconds.keys() - set(self.failed)
        files: dict[str, float] = {}
        for test in chosen:
            files[test.partition("::")[0]] = files.get(test.partition("::")[0], 0) + self.seconds[test]

        def order(test: str) -> tuple:
            file = test.partition("::")[0]
            return not test.startswith(own), self.seconds[test] > 1, files[file], file, self.seconds[test]

        ordered = sorted(chosen, key=order)
        sums = accumulate(self.seconds[test] for test in ordered)
        return [test for test, total in zip(ordered, sums, strict=True) if total <= most or test == ordered[0]]


class Sandbox:
    def __init__(self, root: Path, folder: Path):
        """Make `folder` a copy of the tracked files and new ones, as they are now.

        An earlier copy in the folder is brought up to date; if that changes a file, its traces are dropped.
        """
        self.folder = folder
        update_copy(root, folder, self.drop_traces)
        os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(folder), "MPLBACKEND": "agg"}
        warm()

    def drop_traces(self, changed: set[str]) -> None:
        """Delete the traces if files will change; a killed copy then leaves no stale ones."""
        if changed := changed - {RESULTS}:
            print(f"copying {len(changed)} changed files to {self.folder}", flush=True)
            for path in self.folder.glob("traces-*.json"):
                path.unlink()

    def source(self, file: str) -> str:
        return (self.folder / file).read_text(encoding="utf-8")

    def tests(self, names: list[str], limit: float | None, slow: bool) -> "Tests":
        found = [f"tests/{name}" for name in names if (self.folder / "tests" / name.partition("::")[0]).exists()]
        return Tests(self.folder, ["-m", f"not cluster and not qa{'' if slow else ' and not slow'}", *found], limit)


class Tests:
    """Collected tests, each of which is traced once."""

    def __init__(self, folder: Path, names: list[str], limit: float | None):
        self.folder = folder
        self.traces = self._traced(names, limit)
        os.environ["PYTHONDONTWRITEBYTECODE"], sys.dont_write_bytecode = "1", True
        (orders, to_server), (from_server, answers) = os.pipe(), os.pipe()

        def serve() -> Served:
            os.close(to_server)  # or it would wait for itself when this process is gone
            return Served(orders, answers)

        self.pid = run_tests(folder, ["-x", *names], folder / "served.log", serve)
        os.close(orders)
        os.close(answers)
        self.orders, self.answers = os.fdopen(to_server, "w"), os.fdopen(from_server)
        self.answers.readline()

    def _traced(self, names: list[str], limit: float | None) -> Traces:
        """Trace the tests, or read the traces that a call with the same tests and limit left in this folder."""
        asked = hashlib.sha256(repr((names, limit)).encode()).hexdigest()
        path = self.folder / f"traces-{asked[:8]}.json"
        if not path.exists():
            log = self.folder / "traced.log"
            _, status = os.waitpid(run_tests(self.folder, names, log, lambda: Traced(path, limit)), 0)
            if os.waitstatus_to_exitcode(status) not in (0, 1):  # 1: some tests fail, and are left out
                said = log.read_text(errors="replace")[-4000:]
                raise SystemExit(f"error: tests do not run without any change:\n{said}")
        found = json.loads(path.read_text())
        lines = {file: {int(line): tests for line, tests in by.items()} for file, by in found["lines"].items()}
        return Traces(lines, found["seconds"], found["failed"])

    def outcome(self, file: str, content: str, chosen: list[str]) -> Outcome:
        """Run chosen tests with `content` in `file`, and return their outcome."""
        path = self.folder / file
        before, stat = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(content, encoding="utf-8")
        started = time.monotonic()
        try:
            code, by = self._run(path, before, content, chosen)
        finally:
            path.write_text(before, encoding="utf-8")
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # what was compiled of it is good again
        result = "survived" if code == 0 else "timeout" if code is None else "noticed"
        return Outcome(result, by, time.monotonic() - started)

    def _run(self, path: Path, before: str, after: str, chosen: list[str]) -> tuple[int | None, str]:
        """Return the exit code and the failed test; a new process runs them if more than functions differ."""
        seconds = sum(self.traces.seconds[test] for test in chosen)
        cpu, limit = int(15 + 3 * seconds), (60 + 10 * seconds) * max(1, os.getloadavg()[0])
        noticed = self.folder / "noticed"
        noticed.write_text("")
        order = {"path": str(path), "before": before, "after": after, "tests": chosen, "noticed": str(noticed)}
        self.orders.write(json.dumps(order | {"cpu": cpu, "limit": limit}) + "\n")
        self.orders.flush()
        code = json.loads(self.answers.readline())["code"]
        if noticed.read_text() != "changed":
            return code, noticed.read_text()
        log = self.folder / "mutant.log"
        code = waited(run_tests(self.folder, ["-x", *chosen], log, cpu=cpu), limit)
        said = log.read_text(errors="replace").split("\n")
        failed = (line.partition(" ")[2].partition(" - ")[0] for line in said if line.startswith(("FAILED ", "ERROR ")))
        return code, next(failed, "")

    def close(self) -> None:
        os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
