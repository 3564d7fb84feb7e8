"""Fork one process a command from a process that has imported torch, Snakemake and the project.

    python warm_server.py SOCKET OWNER

Each command gets arguments, environment, folder and open files from its client (warm_client.py), receives the client's
signals, and dies with it. Its process id, session and hash seed differ from those of a new interpreter. The program
returns when the server waits for commands. The server ends with the process OWNER, and removes the socket's folder.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import threading
import traceback
import weakref
from pathlib import Path
from typing import NoReturn

from parsed_once import parse_once

ROOT = Path(__file__).resolve().parents[2]

PRELOADED = (
    "torch",
    "snakemake.cli",
    "smart_open",
    "matplotlib.backends.backend_svg",
    "scipy.stats",
    "sacrebleu",
    "sacremoses",
    "pipeline.grammar.splits",
    "pipeline.papers.project",
    "pipeline.training.job",
    "pipeline.workflow.rules",
    "reprise.cli",
)
"""Modules that commands import, beside their own. One is left out: `pipeline.workflow.start` notes when it began."""


def main(address: str, owner: int) -> None:
    """Import what commands need, then fork one process a connection until the owner ends."""
    life = os.pidfd_open(owner)  # before the imports, as the owner may end during them
    try:
        preload()
        load_once()
    except Exception:  # of faulty code, whose commands fail too
        traceback.print_exc()
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000)  # else it takes a fifteenth of the processor time of commands
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as ready:
        listener.bind(address)
        listener.listen(64)
        ready.register(listener, selectors.EVENT_READ)
        ready.register(life, selectors.EVENT_READ)
        if not os.fork():
            serve(listener, ready)
            shutil.rmtree(Path(address).parent)
        os._exit(0)


def preload() -> None:
    """Import what commands import, and let Snakemake find its plugins."""
    for name in PRELOADED:
        importlib.import_module(name)
    for command in sys.modules["reprise.cli"].REPRISE.commands.values():
        command.load_module()
    sys.modules["snakemake.cli"].get_argument_parser()
    for finalizer in list(weakref.finalize._registry):  # of torch's libraries, not of what a command makes
        finalizer.atexit = False


def load_once() -> None:
    """Load the project once, so that its validators are built and its files parsed."""
    yaml_file = sys.modules["pipeline.core.yaml_file"]
    yaml_file.parse_yaml = parse_once(yaml_file.parse_yaml)
    sys.modules["pipeline.papers.project"].load_project(ROOT, {})


def serve(listener: socket.socket, ready: selectors.BaseSelector) -> None:
    """Fork for clients until the owner ends, report how commands end, and kill those of clients that died."""
    while True:
        for key, _ in ready.select():
            if key.fileobj is listener:
                client, _ = listener.accept()
                pid = fork_command(client)
                handle = os.pidfd_open(pid)
                ready.register(handle, selectors.EVENT_READ, (pid, client))
                ready.register(client, selectors.EVENT_READ, (pid, handle))
            elif key.data is None:
                return  # the owner is gone
            elif isinstance(key.fileobj, socket.socket):
                if key.fileobj.fileno() >= 0:  # else its command has just ended
                    with contextlib.suppress(ProcessLookupError):
                        signal.pidfd_send_signal(key.data[1], signal.SIGKILL)
                    ready.unregister(key.fileobj)
            else:
                ready.unregister(key.fileobj)
                report_end(*key.data, ready)
                os.close(key.fileobj)


def report_end(pid: int, client: socket.socket, ready: selectors.BaseSelector) -> None:
    """Send the exit status of an ended command to its client, negative for a signal."""
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(OSError):
        client.sendall(f"{status}\n".encode())
    with contextlib.suppress(KeyError):
        ready.unregister(client)
    client.close()


def fork_command(client: socket.socket) -> int:
    """Fork the process of a client's command, send its id to the client, and return it."""
    header, streams, _, _ = socket.recv_fds(client, 8, 3)
    size = int.from_bytes(header, "big")
    order = b""
    while len(order) < size and (part := client.recv(size - len(order))):  # else the client has died
        order += part
    if pid := os.fork():
        with contextlib.suppress(OSError):
            client.sendall(f"{pid}\n".encode())
        for stream in streams:
            os.close(stream)
        return pid
    status = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, 1024)
        status = run_command(**json.loads(order))
    except BaseException:
        traceback.print_exc()
    end(status)


def end(status: int) -> NoReturn:
    """End this process as an interpreter ends: wait for threads, run exit handlers, flush."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(status)


def run_command(
    module: str, arguments: list[str], environment: dict[str, str], folder: str, program: str, mask: int
) -> int:
    """Run a module as `python -m` does, and return its exit status."""
    os.setsid()
    os.chdir(folder)
    os.umask(mask)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # a module may have asked for it, and TMPDIR may be another one now
    if threads := environment.get("OMP_NUM_THREADS"):
        sys.modules["torch"].set_num_threads(int(threads))
    paths = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    sys.path[:] = [*paths, *(path for path in sys.path[1:] if path not in paths)]
    sys.executable, sys.argv = program, [module, *arguments]
    sys.stdin = os.fdopen(0, closefd=False)
    by_line = os.isatty(1) or "PYTHONUNBUFFERED" in environment
    sys.stdout = os.fdopen(1, "w", buffering=1 if by_line else -1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return 1 if isinstance(end.code, str) else int(end.code or 0)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return 0


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
