"""Unpacking of models. Imports nothing else before it works, so that it starts at once."""

from pathlib import Path
from typing import Annotated

from pipeline.core.command_line import Argument


def unpack(
    model: Annotated[Path, Argument(metavar="FILE.tar")],
    into: Annotated[Path, Argument(metavar="FOLDER")] = Path(),
) -> None:
    """Unpack the .tar file of a model, and verify its files.

        reprise unpack base-en-de.tar [FOLDER]
        reprise unpack base-en-de/                  # only verify

    Args:
        model: File to unpack, or the folder of a packed model.
        into: Folder to unpack into.
    """
    from reprise.portable import unpack, verify  # brings torch

    folder = model if model.is_dir() else unpack(model, into)
    print(f"{folder}: {len(verify(folder))} files are as they were packed")
