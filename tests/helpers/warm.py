"""Start `python -m pipeline`, `reprise` and `snakemake` at once, forked from a process that has imported all."""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@cache
def warm_programs(code: Path = ROOT) -> Path:
    """Start the server of this test process, and return the folder of programs that let it run their commands.

    A test that needs the process itself (its id, its group, a hash seed of its own) uses the real programs instead.

    Args:
        code: Project whose modules the server imports; they must not change later.
    """
    folder = Path(tempfile.mkdtemp(prefix="warm-"))
    script = f"#!{sys.executable} -ISs\n" + (HERE / "warm_client.py").read_text(encoding="utf-8")
    for name in ("python", "snakemake", "reprise"):
        (folder / name).write_text(script, encoding="utf-8")
        (folder / name).chmod(0o755)
    command = [sys.executable, HERE / "warm_server.py", folder / "socket"]
    environment = os.environ | {"PYTHONPATH": str(code)}
    server = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(stop, server, folder)
    assert server.stdout.readline() == "ready\n"
    return folder


def stop(server: subprocess.Popen, folder: Path) -> None:
    server.stdin.close()
    server.wait()
    shutil.rmtree(folder)
