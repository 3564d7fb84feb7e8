"""Data parallelism: processes share the micro-batches of a step, and sum their gradients.

The sentence pairs of a step, their split and the seed of a micro-batch do not depend on the number of processes. One
process and several compute the same sums in another order. Any launcher that sets RANK, WORLD_SIZE, LOCAL_RANK,
MASTER_ADDR and MASTER_PORT can start the processes: torchrun, or submitit's export.
"""

import contextlib
import datetime
import os
from collections.abc import Iterator, Sequence
from itertools import chain

import torch
import torch.distributed
from torch import Tensor, nn

from pipeline.core.errors import LostPeer, UserError

TIMEOUT = datetime.timedelta(minutes=10)
"""Longest wait of one process for another; the first process saves and writes samples in less time."""
JOINED_WITHIN = datetime.timedelta(hours=2)
"""Longest wait for all to connect; one process of a node copies the corpus to its local disk before."""
BUCKET_BYTES = 25 << 20
"""Bytes of gradients exchanged at once, enough to use the full bandwidth of a network."""


class Group:
    """The processes that train one model; one process by default."""

    def __init__(self, rank: int = 0, size: int = 1, local_rank: int = 0):
        self.rank, self.size, self.local_rank = rank, size, local_rank

    @classmethod
    def from_environment(cls) -> "Group":
        """Return the group from the environment variables of the launcher; one process without `WORLD_SIZE`.

        Raises:
            UserError: The variables are incomplete or not numbers.
        """
        size = os.environ.get("WORLD_SIZE", "1")
        if size == "1":
            return cls()
        try:
            return cls(int(os.environ["RANK"]), int(size), int(os.environ["LOCAL_RANK"]))
        except (KeyError, ValueError) as error:
            raise UserError(
                f"WORLD_SIZE is {size} but RANK or LOCAL_RANK is missing or not a number ({error}); "
                "start the processes with torchrun or through the cluster launcher"
            ) from error

    @contextlib.contextmanager
    def connected(self, device: torch.device) -> Iterator["Group"]:
        """Connect to the other processes within the block: NCCL between GPUs, gloo between CPUs.

        Yields:
            The group itself.

        Raises:
            LostPeer: A process does not answer. (With NCCL its own watchdog reports that and ends the process.)
            RuntimeError: Something other than the connection failed within the block.
        """
        if self.size == 1:
            yield self
            return
        backend = "nccl" if device.type == "cuda" else "gloo"
        try:
            store, rank, size = next(
                torch.distributed.rendezvous("env://", self.rank, self.size, timeout=JOINED_WITHIN)
            )
            await_all(store, size)
            torch.distributed.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=TIMEOUT)
            yield self
        except RuntimeError as error:
            if "gloo" not in str(error) and not isinstance(error, torch.distributed.DistError):
                raise
            raise LostPeer(
                "another process of this training died or hung: see its log; run the same command again to resume from "
                f"the last checkpoint ({error})"
            ) from error
        finally:
            if torch.distributed.is_initialized():
                torch.distributed.destroy_process_group()

    @property
    def is_first(self) -> bool:
        """Return whether this process writes the files and log lines."""
        return self.rank == 0

    def total(self, values: list[float], device: torch.device) -> list[float]:
        """Return element-wise sums of `values` over all processes; the exchange runs on a `device`."""
        if self.size == 1:
            return values
        packed = torch.tensor(values, dtype=torch.float64, device=device)
        torch.distributed.all_reduce(packed)
        return packed.tolist()

    def from_first(self, value: str | None, device: torch.device) -> str | None:
        """Return the first process's `value` in all processes; the exchange runs on a `device`."""
        if self.size == 1:
            return value
        box = [value]
        torch.distributed.broadcast_object_list(box, src=0, device=device if device.type == "cuda" else None)
        return box[0]

    def share_buffers(self, model: nn.Module) -> None:
        """Copy the stored buffers of the first process's `model`, such as running statistics, to all others."""
        stored = model.state_dict().keys()
        for name, buffer in model.named_buffers() if self.size > 1 else ():
            if name in stored:
                torch.distributed.broadcast(buffer, src=0)

    def add_up(self, numbers: Tensor) -> Tensor:
        """Sum `numbers` (…) over all processes in place, without waiting for the device, and return them."""
        if self.size > 1:
            torch.distributed.all_reduce(numbers)
        return numbers


def await_all(store: torch.distributed.Store, size: int) -> None:
    """Wait until all `size` processes use a `store`, then limit its later waits to `TIMEOUT`.

    torch lets only the first process wait for all. The others would go on, and wait for it in their first exchange.
    """
    if store.add("joined", 1) == size:
        store.set("all joined", "yes")
    store.wait(["all joined"], JOINED_WITHIN)
    store.set_timeout(TIMEOUT)


class GradientSums:
    """Replaces every gradient by its sum over all processes, during the backward pass; a missing one counts as zero.

    Gradients are exchanged in buckets, from the last parameter to the first, as a backward pass computes them. All
    processes send the same buckets in the same order, in whatever order their gradients arrive.

    Args:
        parameters: The trained parameters.
        processes: Size of the group; 1 does nothing.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], processes: int):
        self.buckets = buckets(parameters[::-1]) if processes > 1 else []
        self.bucket_of = {id(parameter): number for number, bucket in enumerate(self.buckets) for parameter in bucket}
        self.missing: list[int] | None = None
        """Gradients that each bucket still waits for; None while none may be sent."""
        self.sent: list[tuple[Tensor, torch.distributed.Work]] = []
        for parameter in chain(*self.buckets):
            parameter.register_post_accumulate_grad_hook(self.arrived)

    def last_pass(self) -> None:
        """Announce the last backward pass of a step: gradients are complete after it and may be sent."""
        self.missing = [len(bucket) for bucket in self.buckets]

    def arrived(self, parameter: Tensor) -> None:
        """Count the gradient of a `parameter` (…), just accumulated, and send the buckets that are complete."""
        if self.missing is None:
            return
        self.missing[self.bucket_of[id(parameter)]] -= 1
        while len(self.sent) < len(self.buckets) and not self.missing[len(self.sent)]:
            self.send()

    def send(self) -> None:
        """Start the all-reduce of the next bucket."""
        bucket = self.buckets[len(self.sent)]
        gradients = [torch.zeros_like(parameter) if parameter.grad is None else parameter.grad for parameter in bucket]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        self.sent.append((flat, torch.distributed.all_reduce(flat, async_op=True)))

    def finish(self) -> None:
        """Send the remaining buckets, wait for all, and set the gradients to the sums."""
        while len(self.sent) < len(self.buckets):
            self.send()
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            for parameter, summed in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
                parameter.grad = summed.view_as(parameter)
        self.missing, self.sent = None, []


class SharedSums:
    """Memory in which the graphs of a step leave gradients and results, and which all processes then sum.

    The buckets are those of `GradientSums`, so that the sums are the same to the last bit.

    Attributes:
        gradients: Accumulated gradient of each parameter, a view of its bucket.
        results: Summed loss, negative log-likelihood, FLOPs, and processes asked to stop; float64, shape (4,).

    Args:
        parameters: The trained parameters.
        group: The processes that train the model.
        device: Where this process trains.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], group: Group, device: torch.device):
        self.group, self.device = group, device
        self.flat: list[Tensor] = []
        self.gradients: dict[nn.Parameter, Tensor] = {}
        self.results = torch.zeros(4, dtype=torch.float64, device=device)
        for bucket in buckets(parameters[::-1]):
            sizes = [parameter.numel() for parameter in bucket]
            self.flat.append(torch.zeros(sum(sizes), device=device))
            for parameter, gradient in zip(bucket, self.flat[-1].split(sizes), strict=True):
                self.gradients[parameter] = gradient.view_as(parameter)

    def exchange(self, totals: Tensor, known: Sequence[float]) -> None:
        """Sum gradients and results over all processes, in place.

        Args:
            totals: Summed loss and negative log-likelihood of this process, shape (2,).
            known: Its FLOPs, and 1 if it was asked to stop, else 0.
        """
        self.results.copy_(torch.cat((totals, scalars_on(self.device, known))))
        for tensor in (*self.flat, self.results):
            self.group.add_up(tensor)


def scalars_on(device: torch.device, values: Sequence[float]) -> Tensor:
    """Copy `values` to a `device` as float64 (values,) without waiting for it."""
    found = torch.tensor(values, dtype=torch.float64)
    return found.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else found


def buckets(parameters: Sequence[nn.Parameter]) -> list[list[nn.Parameter]]:
    """Group neighbouring parameters up to `BUCKET_BYTES`; a larger one has its own bucket."""
    found: list[list[nn.Parameter]] = []
    room = 0
    for parameter in parameters:
        if parameter.nbytes > room:
            found.append([])
            room = BUCKET_BYTES
        found[-1].append(parameter)
        room -= parameter.nbytes
    return found
