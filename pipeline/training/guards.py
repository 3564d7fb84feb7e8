"""Detection and explanation of failures in a training step: non-finite numbers and lack of memory."""

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from pipeline.config import RunSpec
from pipeline.core.errors import UserError, first_of
from pipeline.data.batches.corpus_batches import AnyBatch
from pipeline.training.state import TrainingState

log = logging.getLogger(__name__)
MOST_SKIPPED_IN_A_ROW = 10
REFUSALS = ("can't allocate memory", "not enough memory", "CUDA error: out of memory", "STATUS_ALLOC_FAILED")
"""Parts of messages about a lack of memory."""


NAMED_SEQUENCES = 10
"""Sequences of a faulty step that its message names."""


def count_skipped_step(
    name: str, state: TrainingState, step: int, batches: Sequence[AnyBatch], sequences: Sequence[int]
) -> str | None:
    """Count a step that was skipped because its loss or gradient is not finite.

    Args:
        name: Name of the run.
        state: State of the training; its counters are increased.
        step: Number of the step, from 0.
        batches: Its micro-batches, described in the message.
        sequences: Its sequences in the training split, from 0.

    Returns:
        A description of the fault if too many steps in a row were skipped, else None.
    """
    state.skipped_updates += 1
    state.skipped_in_a_row += 1
    fault = f"loss or gradient is not finite in step {step} ({describe(batches)}; {name_lines(sequences)})"
    log.warning("%s: %s: skipped, %d so far", name, fault, state.skipped_updates)
    too_many = too_many_skipped(state)
    return f"{fault}, {too_many}" if too_many else None


def name_lines(sequences: Sequence[int]) -> str:
    """Return the names of the lines of the training split that hold `sequences`, which are numbered from 0.

    Only the first of many are named.
    """
    lines = sorted(int(sequence) + 1 for sequence in sequences)
    return f"lines {first_of(list(map(str, lines)), NAMED_SEQUENCES)} of the training split"


def too_many_skipped(state: TrainingState) -> str | None:
    """Return a description of the fault if too many steps in a row were skipped, else None."""
    return f"{state.skipped_in_a_row} skipped in a row" if state.skipped_in_a_row >= MOST_SKIPPED_IN_A_ROW else None


class OutOfMemory(UserError):
    """Memory ran out in a training step."""


class Diverged(UserError):
    """A training whose loss is not finite, or far above that of a random guess, after one rollback."""


def diverged(name: str, state: TrainingState, fault: str, good: str) -> Diverged:
    """Return the error of a training that cannot continue, to be raised.

    Args:
        name: Name of the run.
        state: State of the training.
        fault: What is not finite, or exploded.
        good: Path of the last good weights, or `none yet`.
    """
    again = f", again after rolling back at step {state.returned.at}" if state.returned else ""
    return Diverged(
        f"{name}: {fault}{again}; last good checkpoint: {good}. Lower training.lr_factor (or lr), raise "
        "training.warmup_steps, set training.clip_norm, or use precision fp32"
    )


def all_finite(tensors: Iterable[torch.Tensor]) -> bool:
    """Return whether all elements of all `tensors` (…) on one device are finite."""
    return bool(torch.stack([tensor.isfinite().all() for tensor in tensors]).all())


@contextlib.contextmanager
def out_of_memory_explained(explain: Callable[..., UserError], *arguments: Any) -> Iterator[None]:
    """Turn an out-of-memory error within the block into `explain(*arguments)`, which names the setting to change.

    Raises:
        UserError: Memory ran out.
        RuntimeError: Another error of torch occurred.
        MemoryError: Replaced by UserError, like torch's errors about memory.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise explain(*arguments) from error


def out_of_memory_in_step(spec: RunSpec, step: int, batches: Sequence[AnyBatch], positions: int) -> OutOfMemory:
    """Return the error that micro-batches do not fit into memory.

    Args:
        spec: The run that trains.
        step: Number of the step, from 0.
        batches: Micro-batches that were computed.
        positions: Positions of a micro-batch at present: the setting, or fewer after memory ran out before.
    """
    return OutOfMemory(
        f"{spec.name}: out of memory in step {step} with a micro-batch of {describe(batches)}; set "
        f"training.{micro_batch_setting(spec)} to {positions // 2} (now {positions}): the step keeps its size, in more "
        "micro-batches"
    )


def micro_batch_setting(spec: RunSpec) -> str:
    """Return the name of the setting that limits the positions of a micro-batch."""
    return "micro_batch_frames" if spec.model.reads == "speech" else "micro_batch_tokens"


def out_of_memory_with_one_sequence(spec: RunSpec, step: int, where: str) -> OutOfMemory:
    """Return the error that not even the longest sequence alone fits into memory.

    Args:
        spec: The run, whose settings name the longest sequence allowed.
        step: Number of the step, from 0.
        where: Shape of the micro-batch, or the process without memory.
    """
    key = "max_frames" if spec.model.reads == "speech" else "max_length"
    return OutOfMemory(
        f"{spec.name}: out of memory in step {step} with the smallest micro-batch ({where}); lower training.{key} "
        f"(now {getattr(spec.training, key)}), or train on a device with more memory"
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out.

    torch's allocator of GPU memory raises its own class. That of the CPU, CUDA itself, for a graph or a module of
    kernels, and CUDA's libraries end in other errors.
    """
    refused = any(text in str(error) for text in REFUSALS)
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or refused


def describe(batches: Sequence[AnyBatch]) -> str:
    """Format the shapes of `batches`: sequences x (source + target positions)."""
    shapes = ["{} sequences x {} + {} positions".format(*batch.src_shape, batch.tgt_out.shape[1]) for batch in batches]
    return "; ".join(shapes) or "no micro-batch on this process"
