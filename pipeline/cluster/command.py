"""A stage as a job: a command line in a folder of its own, done when the files that it makes are there.

command.json            {"key", "arguments", "outputs"}; done.json and the other markers lie beside it
"""

import os
from pathlib import Path

from pipeline.errors import UserError
from pipeline.files import read_json, read_marker, sha256_json, write_json
from pipeline.stages import parse
from pipeline.training.key import run_key


def order_command(folder: Path, arguments: list[str], outputs: list[Path]) -> None:
    """Write `command.json`; what was made by the same command from the same files counts as done while it is there."""
    key = sha256_json([arguments, [state_of(each) for each in arguments if Path(each) not in outputs]])
    done = read_marker(folder / "done.json")
    if done and (done.get("key") != key or not all(path.exists() for path in outputs)):
        (folder / "done.json").unlink(missing_ok=True)
    write_json(
        folder / "command.json", {"key": key, "arguments": arguments, "outputs": [str(path) for path in outputs]}
    )


def state_of(argument: str) -> list[int] | None:
    """Size and time of a file that a command names; None for what is no file, such as JSON."""
    if not os.path.isfile(argument):  # Path.is_file raises OSError where an argument is too long for a name
        return None
    status = os.stat(argument)
    return [status.st_size, status.st_mtime_ns]


def perform_command(folder: Path) -> None:
    """Do what `command.json` says, and write `done.json` (a job's function).

    Raises:
        UserError: the stage failed, or ended without one of its outputs.
    """
    command = read_json(folder / "command.json")
    perform(command["arguments"])
    for output in command["outputs"]:
        if not Path(output).exists():
            raise UserError(f"{' '.join(command['arguments'][:1])}: ended without writing {output}")
    write_json(folder / "done.json", {"key": command["key"]})


def perform(arguments: list[str]) -> None:
    """A stage in this process. Raises UserError as the stage does."""
    args = parse(arguments)
    args.stage_module.run(args)


def job_key(folder: Path) -> str:
    """The key of what `folder` is for: a command, or the training of a run. Raises UserError when it is for neither."""
    command = read_marker(folder / "command.json")
    return command["key"] if command else run_key(folder)
