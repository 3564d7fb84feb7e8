"""Where a number comes from: commit, versions, machine."""

import functools
import importlib.metadata
import os
import platform
import shutil
import subprocess
from pathlib import Path

PACKAGES = ("torch", "numpy", "sentencepiece", "sacrebleu", "sacremoses")
ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def commit() -> str:
    """Return the checkout's commit, with `+changes` if tracked files differ; `unknown` outside one or without git."""
    if shutil.which("git") is None:
        return "unknown"
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False)
    if head.returncode:
        return "unknown"
    changes = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, check=False)
    return head.stdout.strip() + ("+changes" if changes.stdout.strip() else "")


def processor() -> str:
    """The processor's name, as the system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n")
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def provenance() -> dict[str, str | int]:
    """Commit, package versions and machine of this process; imports none of the packages."""
    return {
        "commit": commit(),
        "python": platform.python_version(),
        "node": platform.node(),
        "processor": processor(),
        "cores": os.cpu_count() or 1,
        **{name: importlib.metadata.version(name) for name in PACKAGES},
    }
