"""Provenance of numbers: commit and digest of the code, versions of packages, and machine."""

import functools
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

from pipeline.core.digests import sha256_file, sha256_json

PACKAGES = ("torch", "numpy", "sentencepiece", "sacrebleu", "sacremoses")
ROOT = Path(__file__).resolve().parents[2]
"""The folder of this checkout."""


@functools.cache
def commit() -> str:
    """Return twelve digits of this checkout's commit, or `unknown`.

    `+changes` follows if a tracked file differs, or if `pipeline` has a file that git does not know, such as a new
    architecture. Only `.git` beside the packages counts: neither `GIT_DIR` and its like in the environment, nor a
    repository that this folder was unpacked in.
    """
    head = git_output("rev-parse", "--short=12", "HEAD")
    changes = git_output("status", "--porcelain", "-uno")
    new_code = git_output("ls-files", "--others", "--exclude-standard", "--", "pipeline")
    if head is None or changes is None:
        return "unknown"
    return head + ("+changes" if changes or new_code else "")


def git_output(*arguments: str) -> str | None:
    """Return what git prints about this checkout; None if there is no such repository or no git."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    command = ["git", f"--git-dir={ROOT / '.git'}", f"--work-tree={ROOT}", *arguments]
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return None if done.returncode else done.stdout.strip()


def processor() -> str:
    """Return the name of the processor, as the system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n")
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def provenance() -> dict[str, str | int]:
    """Return commit, package versions and machine of this process, without importing the packages."""
    return {
        "commit": commit(),
        "python": platform.python_version(),
        "node": platform.node(),
        "processor": processor(),
        "cores": os.cpu_count() or 1,
        **{name: importlib.metadata.version(name) for name in PACKAGES},
    }


def code_digest(package: Path | None = None) -> str:
    """Return the SHA-256 of the names and contents of the Python files and tables of a `package`; None is this one."""
    package = package or ROOT / "pipeline"
    found = (path for path in package.rglob("*") if path.suffix in (".py", ".txt", ".csv"))
    return sha256_json({str(path.relative_to(package)): sha256_file(path) for path in found})
