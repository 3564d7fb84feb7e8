"""Data parallelism: the micro-batches of an update are dealt to the processes, their gradients added up.

Which pairs an update holds, how they are split and which seed a micro-batch has do not depend on the number of
processes, so one process and several compute the same sums in another order. Started by anything that sets RANK,
WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT: torchrun, or submitit's export.
"""

import contextlib
import datetime
import os
from collections.abc import Iterator

import torch
import torch.distributed
from torch import Tensor

from pipeline.core.errors import LostPeer, UserError

TIMEOUT = datetime.timedelta(minutes=10)
"""How long processes wait for one: longer than the first takes to save, and to write samples, while others wait."""


class Group:
    """The processes that train one model; of one process when nothing says otherwise."""

    def __init__(self, rank: int = 0, size: int = 1, local_rank: int = 0):
        self.rank, self.size, self.local_rank = rank, size, local_rank

    @classmethod
    def from_environment(cls) -> "Group":
        """Raises UserError when the variables are incomplete or not numbers."""
        size = os.environ.get("WORLD_SIZE", "1")
        if size == "1":
            return cls()
        try:
            return cls(int(os.environ["RANK"]), int(size), int(os.environ["LOCAL_RANK"]))
        except (KeyError, ValueError) as error:
            raise UserError(
                f"WORLD_SIZE is {size} but RANK or LOCAL_RANK is missing or no number ({error}); "
                "start the processes with torchrun or through the cluster launcher"
            ) from error

    @contextlib.contextmanager
    def connected(self, device: torch.device) -> Iterator["Group"]:
        """Meet the other processes: NCCL between GPUs, gloo between CPUs.

        Raises:
            LostPeer: one of them does not answer. (Where NCCL waits, its own watchdog says so and ends the process.)
        """
        if self.size == 1:
            yield self
            return
        backend = "nccl" if device.type == "cuda" else "gloo"
        try:
            torch.distributed.init_process_group(backend, rank=self.rank, world_size=self.size, timeout=TIMEOUT)
            yield self
        except RuntimeError as error:
            if "gloo" not in str(error) and not isinstance(error, torch.distributed.DistError):
                raise
            raise LostPeer(
                f"another process of this training died or hangs, for at most {TIMEOUT}: see its log; the same command "
                f"goes on from the last checkpoint ({error})"
            ) from error
        finally:
            if torch.distributed.is_initialized():
                torch.distributed.destroy_process_group()

    @property
    def is_first(self) -> bool:
        """Whether this process is the one that writes files and log lines."""
        return self.rank == 0

    def total(self, values: list[float], device: torch.device) -> list[float]:
        """Element-wise sums over all processes."""
        if self.size == 1:
            return values
        packed = torch.tensor(values, dtype=torch.float64, device=device)
        torch.distributed.all_reduce(packed)
        return packed.tolist()

    def from_first(self, value: str | None, device: torch.device) -> str | None:
        """What the first process holds, on all of them."""
        if self.size == 1:
            return value
        box = [value]
        torch.distributed.broadcast_object_list(box, src=0, device=device if device.type == "cuda" else None)
        return box[0]

    def add_up(self, numbers: Tensor) -> Tensor:
        """The same, of numbers that stay on their device."""
        if self.size > 1:
            torch.distributed.all_reduce(numbers)
        return numbers
