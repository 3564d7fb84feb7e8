"""Processes forked from one that has imported all packages but ours, which saves the seconds that torch takes."""

import contextlib
import importlib
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

WARM = ("torch", "numpy", "pandas", "pydantic", "yaml", "pytest", "hypothesis", "safetensors.torch", "sentencepiece")
WARM += ("sacrebleu", "rapidfuzz", "requests", "soundfile", "coverage", "torch.utils._pytree", "numpy.testing")
QUIET = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--durations=0"]
QUIET += ["--ignore-glob=*/test_fuzz.py"]
MEMORY = 8 << 30


def warm() -> None:
    for name in WARM:
        importlib.import_module(name)


def run_tests(
    folder: Path, arguments: list[str], log: Path, plugin: Callable[[], object] | None = None, cpu: int | None = None
) -> int:
    """Fork a process, in a group of its own, that runs pytest in `folder`."""
    if pid := os.fork():
        return pid
    code = 99
    with contextlib.suppress(BaseException):
        os.setsid()
        os.chdir(folder)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
        if cpu:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
        with open(log, "w") as handle:
            os.dup2(handle.fileno(), 1)
            os.dup2(handle.fileno(), 2)
        sys.path.insert(0, str(folder))
        import pytest

        code = int(pytest.main([*QUIET, *arguments], [plugin()] if plugin else []))
    os._exit(code)


def waited(pid: int, limit: float) -> int | None:
    """Return the exit code of a process; None if it took too long."""
    end = time.monotonic() + limit
    code = None
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            signalled = os.WIFSIGNALED(status)
            code = None if signalled and os.WTERMSIG(status) == signal.SIGXCPU else 98
            code = code if signalled else os.WEXITSTATUS(status)
            break
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if code is None:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
    return code
