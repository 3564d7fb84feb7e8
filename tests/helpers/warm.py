"""Start `python -m pipeline`, `reprise` and `snakemake` at once, forked from a process that has imported all."""

import os
import subprocess
import sys
import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from filelock import FileLock

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
IS_WORKER = "xdist" in sys.modules and "PYTEST_XDIST_WORKER" in os.environ
"""True in a worker of pytest-xdist; the commands of tests inherit its environment alone."""
RUN = os.environ["PYTEST_XDIST_TESTRUNUID"] if IS_WORKER else uuid4().hex

AT_FIRST = dict(os.environ)
"""Environment of a server, which must not depend on the test that starts it."""

START_LIMIT_S = 600.0
"""Time for the imports of a server; a slow disk takes a minute."""


@cache
def warm_programs(code: Path = ROOT) -> Path:
    """Return the folder of programs that let a server run their commands; start it, unless another worker has.

    A test that needs the process itself (its id, its group, a hash seed of its own) uses the real programs instead.

    Args:
        code: Project whose modules the server imports; they must not change later.
    """
    owner = os.getppid() if IS_WORKER else os.getpid()
    name = sha256(f"{RUN} {owner} {code}".encode()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir(), f"warm-{name}")
    folder.mkdir(exist_ok=True)
    with FileLock(folder / "lock"):
        if not (folder / "socket").exists():  # no worker has started it, or its start failed
            start_server(folder, code, owner)
    return folder


def start_server(folder: Path, code: Path, owner: int) -> None:
    """Start a server that ends, and removes its folder, when the process `owner` has ended.

    It has a session of its own, so that an interrupt from the terminal does not end it before.

    Raises:
        TimeoutExpired: It hangs while it imports; it is killed.
    """
    script = f"#!{sys.executable} -ISs\n" + (HERE / "warm_client.py").read_text(encoding="utf-8")
    for name in ("python", "snakemake", "reprise"):
        (folder / name).write_text(script, encoding="utf-8")
        (folder / name).chmod(0o755)
    command = [sys.executable, HERE / "warm_server.py", folder / "socket", str(owner)]
    environment = AT_FIRST | {"PYTHONPATH": str(code)}
    subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, start_new_session=True, check=True, timeout=START_LIMIT_S
    )
