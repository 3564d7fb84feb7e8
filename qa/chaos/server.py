"""Run stages in processes forked from one that has imported everything, which saves the import of torch.

    python -m qa.chaos.server     one JSON request per line: {"argv": […], "folder": …, "log": …, "limit_s": …}

Answers each request with a line of JSON: the exit status, negative for a signal.
"""

import contextlib
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from pipeline.core.schema import Closed

ROOT = Path(__file__).resolve().parents[2]
OVER_TIME = -100
LATE = (
    *("jieba", "langcodes", "sacrebleu", "sacremoses", "torch._dynamo", "pipeline.grammar.splits"),
    *("pipeline.models.recurrent.model", "pipeline.models.weighted_transformer.model", "pipeline.outputs.maker"),
)
"""Modules that stages import when they need them."""


class Server:
    """The process that forks; `environment` may make calls of its children fail."""

    def __init__(self, environment: dict[str, str]):
        paths = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "MPLCONFIGDIR": "/tmp/chaos-matplotlib"}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        command = [sys.executable, "-m", "qa.chaos.server"]
        self.process = subprocess.Popen(command, env=environment | paths, cwd=ROOT, **pipes)

    def run(self, argv: list[str], folder: Path, log: Path, limit_s: float) -> int:
        """Run a stage in `folder`, write its output to `log`, and return the exit status."""
        assert self.process.stdin and self.process.stdout
        order = {"argv": argv, "folder": str(folder), "log": str(log), "limit_s": limit_s}
        print(json.dumps(order), file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def serve() -> None:
    from pipeline import __main__ as main
    from pipeline.core import retries
    from pipeline.papers.project import load_project
    from pipeline.stages import STAGES

    for command in STAGES.values():
        command.load()
    for name in LATE:
        importlib.import_module(name)
    load_project(ROOT, {})  # builds the validators of its files
    build_validators(Closed)
    gc.freeze()
    retries.PAUSES_S = retries.READ_PAUSES_S = (0.0, 0.01, 0.02)
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if not child:
            perform(order, main.main)
        print(status_of(child, order["limit_s"]), flush=True)


def build_validators(kind: type[Closed]) -> None:
    """Build the validators of the records derived from `kind`, which else each child does for itself."""
    for record in kind.__subclasses__():
        record.model_rebuild()
        build_validators(record)


def perform(order: dict[str, Any], main: Any) -> None:
    """Run the stage in the child, and end the process."""
    status = 1
    os.setpgid(0, 0)
    try:
        os.chdir(order["folder"])
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for descriptor in (1, 2):
            os.dup2(log, descriptor)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        status = main(order["argv"])
    except SystemExit as stopped:
        status = stopped.code if isinstance(stopped.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def status_of(child: int, limit_s: float) -> int:
    """Wait for a child, and kill the processes that it leaves behind."""
    over, pause = time.monotonic() + limit_s, 0.001
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found or time.monotonic() > over:
            break
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    if not found:
        os.waitpid(child, 0)
        return OVER_TIME
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    serve()
