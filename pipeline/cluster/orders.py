"""Orders: stages that are done together in one job, beside the training whose weights they read where there is one.

An order is a folder in `jobs/` of a run with a command in it (command.py). Whoever works there does every order whose
inputs are made, each in a process of its own: one that fails leaves a note, and the others go on.
"""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from pipeline.cluster.command import order_command
from pipeline.cluster.markers import is_done, note_failure
from pipeline.core.layout import DONE_FILE, TRAINED_FILE
from pipeline.core.records.jobs import Command, Done
from pipeline.core.records.record import read_note

log = logging.getLogger(__name__)

TOGETHER = "orders"
"""The key of a job that does them: which they are is looked up there."""
PROGRAM = [sys.executable, "-m", "pipeline"]
OF_RANK = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def place(folder: Path, arguments: list[str], makes: list[Path], reads: list[Path]) -> None:
    """Order a stage, which is to be tried again if it failed before."""
    order_command(folder, arguments, makes, reads)
    (folder / "failed.json").unlink(missing_ok=True)


def do_orders(folder: Path) -> None:
    """All that can be done (a job's function)."""
    perform_orders(folder)
    Done(key=TOGETHER).write(folder / DONE_FILE)


def perform_orders(folder: Path) -> None:
    """Every order in `folder`, one after the other, also those that come meanwhile; each once."""
    tried: set[str] = set()
    while ready := next((one for one in ready_orders(folder) if one[1].key not in tried), None):
        tried.add(ready[1].key)
        perform_order(*ready)


def ready_orders(folder: Path) -> Iterator[tuple[Path, Command]]:
    """Orders that are neither done nor failed, and read nothing that another is still to make."""
    found = {}
    for path in sorted(folder.glob("*/command.json")):
        noted = read_note(Command, path)
        if noted and noted.inputs:
            outputs, inputs = map(Path, noted.outputs), map(Path, noted.inputs)
            command = order_command(path.parent, noted.arguments, list(outputs), list(inputs))
            if not is_done(path.parent, command.key):
                found[path.parent] = command
    promised = {output for command in found.values() for output in command.outputs}
    for order, command in found.items():
        there = all(is_there(Path(each)) and each not in promised for each in command.inputs)
        if there and not (order / "failed.json").exists():
            yield order, command


def is_there(path: Path) -> bool:
    """Of a training's record, as soon as its end is noted: the launcher copies that note."""
    return path.exists() or (path.name == TRAINED_FILE and (path.parent / DONE_FILE).exists())


def perform_order(folder: Path, command: Command) -> None:
    """In a process that is ended with this one; leaves done.json or failed.json."""
    log.info("%s", folder.name)
    environment = {name: value for name, value in os.environ.items() if name not in OF_RANK}
    said = folder / "stage.log"
    with open(said, "w") as out:
        process = subprocess.Popen(
            [*PROGRAM, *command.arguments], stdout=out, stderr=subprocess.STDOUT, env=environment
        )
        try:
            status = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    missing = [output for output in command.outputs if not Path(output).exists()]
    if status == 0 and not missing:
        Done(key=command.key).write(folder / DONE_FILE)
        return
    error = why(status, said) if status else f"{missing[0]} was not written"
    log.error("%s failed: %s", folder.name, error)
    note_failure(folder, command.key, error)


def why(status: int, said: Path) -> str:
    """What a process that failed said last; one that was killed says nothing of it itself."""
    last = said.read_text(errors="replace").strip().split("\n")[-1].removeprefix("error: ")
    if status < 0:
        return f"killed by {signal.Signals(-status).name} (out of memory?)" + (f" after saying: {last}" if last else "")
    return last or f"ended with status {status}"
