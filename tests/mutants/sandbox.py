"""A copy of the project in which tests run over changed files: each time in a process forked from one that has imported
all packages but ours, which saves the seconds that torch takes."""

import contextlib
import importlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

WARM = ("torch", "numpy", "pandas", "pydantic", "yaml", "pytest", "hypothesis", "safetensors.torch", "sentencepiece")
WARM += ("sacrebleu", "rapidfuzz", "requests", "soundfile", "coverage", "torch.utils._pytree", "numpy.testing")
MARKS = "not slow and not cluster"
TOO_SLOW = "*/test_fuzz.py"
MEMORY = 8 << 30
TRACED = Path(__file__).with_name("traced.py")


@dataclass(frozen=True)
class Outcome:
    """Of some tests: `noticed`, by which test, `timeout`, or `survived`."""

    result: str
    by: str
    seconds: float


@dataclass(frozen=True)
class Traces:
    """What a run of the tests saw.

    Attributes:
        lines: tests by file (below pipeline/) and line; of lines that ran on import, the test is empty.
        seconds: of each test, in the order in which they ran.
        failed: tests that fail without any change.
    """

    lines: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]
    failed: list[str]

    def tests_of(self, file: str, line: int) -> list[str]:
        """Tests that run a line, or anything of the file where it runs on import; the fastest files first."""
        by_line = self.lines.get(file, {})
        found = set(by_line.get(line, ()))
        if "" in found or not found:
            found = {test for tests in by_line.values() for test in tests} if "" in found else set()
        chosen = (found - {""}) & self.seconds.keys() - set(self.failed)
        files: dict[str, float] = {}
        for test in chosen:
            files[test.partition("::")[0]] = files.get(test.partition("::")[0], 0) + self.seconds[test]
        return sorted(
            chosen, key=lambda test: (files[test.partition("::")[0]], test.partition("::")[0], self.seconds[test])
        )


class Sandbox:
    def __init__(self, root: Path, folder: Path):
        """Copies what git would: tracked files and new ones, as they are now."""
        self.root, self.folder = root, folder
        shutil.rmtree(folder, ignore_errors=True)
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        listed = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout.decode().split("\0")
        for name in listed:
            if name and (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, folder / name)
        os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(folder), "MPLBACKEND": "agg"}
        for name in WARM:
            importlib.import_module(name)

    def source(self, file: str) -> str:
        return (self.folder / "pipeline" / file).read_text(encoding="utf-8")

    def traces(self, tests: list[str]) -> Traces:
        """Run tests under coverage, once, unchanged."""
        out = self.folder / "traces.json"
        out.unlink(missing_ok=True)
        pid = self._fork(["-p", "traced", *self.given(tests)], self.folder / "traced.log", trace=True)
        os.waitpid(pid, 0)
        found = json.loads(out.read_text())
        lines = {file: {int(line): names for line, names in by.items()} for file, by in found["lines"].items()}
        return Traces(lines, found["seconds"], found["failed"])

    def given(self, tests: list[str]) -> list[str]:
        return [f"tests/{name}" for name in tests if (self.folder / "tests" / name).exists()]

    def outcome(self, file: str, content: str, tests: list[str], seconds: float) -> Outcome:
        """Of `tests` with `file` (below pipeline/) holding `content`; seconds: what they take unchanged."""
        path, log = self.folder / "pipeline" / file, self.folder / "mutant.log"
        before, stat = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(content, encoding="utf-8")
        started = time.monotonic()
        try:
            code = self._wait(self._fork(["-x", *tests], log, cpu=20 + 5 * seconds), 120 + 20 * seconds)
        finally:
            path.write_text(before, encoding="utf-8")
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # what was compiled of it is good again
        said = log.read_text(errors="replace").split("\n")
        by = next((line.split()[1] for line in said if line.startswith(("FAILED ", "ERROR "))), "")
        result = "survived" if code == 0 else "timeout" if code is None else "noticed"
        return Outcome(result, by, time.monotonic() - started)

    def _fork(self, arguments: list[str], log: Path, trace: bool = False, cpu: float | None = None) -> int:
        """A process that runs pytest, in a group of its own."""
        if pid := os.fork():
            return pid
        code = 99
        with contextlib.suppress(BaseException):
            os.setsid()
            os.chdir(self.folder)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            if cpu:
                resource.setrlimit(resource.RLIMIT_CPU, (int(cpu), int(cpu)))
            sys.dont_write_bytecode = not trace
            os.environ["PYTHONDONTWRITEBYTECODE"] = "" if trace else "1"
            with open(log, "w") as handle:
                os.dup2(handle.fileno(), 1)
                os.dup2(handle.fileno(), 2)
            sys.path[:0] = [str(self.folder), str(TRACED.parent)]
            import pytest

            quiet = [
                "-q",
                "-m",
                MARKS,
                "-p",
                "no:cacheprovider",
                "-p",
                "no:xdist",
                "--durations=0",
                f"--ignore-glob={TOO_SLOW}",
            ]
            code = int(pytest.main([*quiet, *arguments]))
        os._exit(code)

    def _wait(self, pid: int, limit: float) -> int | None:
        """Its exit code; None when it took too long."""
        end = time.monotonic() + limit
        code = None
        while time.monotonic() < end:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                signalled = os.WIFSIGNALED(status)
                code = None if signalled and os.WTERMSIG(status) == signal.SIGXCPU else 98 if signalled else 0
                code = os.WEXITSTATUS(status) if not signalled else code
                break
            time.sleep(0.05)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        if code is None:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        return code
