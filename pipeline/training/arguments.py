"""Options of the commands that train; without torch, so that help and completion need not load it."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pipeline.core.command_line import Argument

SAVE_EVERY_S = 300.0


@dataclass(frozen=True)
class MachineOptions:
    """Options of the process that trains.

    Attributes:
        device: Where to train. `auto` takes a GPU if there is one.
        threads: CPU threads of this process; by default OMP_NUM_THREADS, or all cores. `continue` takes the threads
            of the run.
        save_every: Seconds between checkpoints.
    """

    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads: int | None = None
    save_every: Annotated[float, Argument(metavar="S")] = SAVE_EVERY_S
