"""A stage as a job: a command line in a folder of its own, done when the files that it makes exist.

The command is in `state.jsonl`, beside `done.json`.
"""

import os
from pathlib import Path

from pipeline.core.digests import noted_digest, sha256_json
from pipeline.core.errors import UserError
from pipeline.core.layout import DONE_FILE, STATE_FILE
from pipeline.core.records.jobs import Command, Done, last_event, record_event
from pipeline.core.records.record import read_note
from pipeline.stages import perform
from pipeline.training.specification import run_key


def record_command(folder: Path, arguments: list[str], outputs: list[Path]) -> Command:
    """Record a command, and remove `done.json` of another command, of changed inputs, or of missing outputs.

    Args:
        folder: Folder of the job.
        arguments: The stage with its arguments.
        outputs: Files that it makes; those among the arguments do not count as inputs.

    Returns:
        The command with the key of its job.
    """
    key = sha256_json([arguments, [input_state(each) for each in arguments if Path(each) not in outputs]])
    done = read_note(Done, folder / DONE_FILE)
    if done and (done.key != key or not all(path.exists() for path in outputs)):
        (folder / DONE_FILE).unlink(missing_ok=True)
    command = Command(key=key, arguments=arguments, outputs=[*map(str, outputs)])
    if last_event(Command, folder) != command:
        record_event(folder, command)
    return command


def input_state(argument: str) -> str | list[int] | None:
    """Return the recorded digest of a file that a command names, else its size and time; None if it is no file."""
    if not os.path.isfile(argument):  # Path.is_file raises OSError if the argument is too long for a name
        return None
    if digest := noted_digest(Path(argument)):  # Snakemake sets a new time
        return digest
    status = os.stat(argument)
    return [status.st_size, status.st_mtime_ns]


def perform_command(folder: Path) -> None:
    """Run the last command of a folder, and write `done.json`; called by the job.

    Raises:
        UserError: The stage failed, or did not write one of its outputs.
    """
    command = last_event(Command, folder)
    if command is None:
        raise UserError(f"{folder}: {STATE_FILE} contains no `command` event; run the same command again")
    perform(command.arguments)
    for output in command.outputs:
        if not Path(output).exists():
            raise UserError(
                f"{' '.join(command.arguments[:1])}: ended without writing {output}; please report this bug"
            )
    Done(key=command.key).write(folder / DONE_FILE)


def job_key(folder: Path) -> str:
    """Return the key of a folder's job: a command, or the training of a run.

    Raises:
        UserError: The folder has no command and no `run.yaml`.
    """
    command = last_event(Command, folder)
    return command.key if command else run_key(folder)
