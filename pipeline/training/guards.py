"""What can go wrong in an update, and what to tell whoever has to mend it."""

import contextlib
import logging
from collections.abc import Iterator, Sequence

import torch

from pipeline.data.corpus_batches import AnyBatch
from pipeline.errors import UserError
from pipeline.training.state import TrainingState

log = logging.getLogger(__name__)
MOST_SKIPPED_IN_A_ROW = 10


def skip_update(name: str, state: TrainingState, batches: Sequence[AnyBatch], good: str) -> None:
    """Count update `state.step`, whose loss or gradient is not finite, as left out.

    Args:
        good: the last good checkpoint, for the message.

    Raises:
        UserError: it is the last of `MOST_SKIPPED_IN_A_ROW`.
    """
    state.skipped_updates += 1
    state.skipped_in_a_row += 1
    what = f"{name}: loss or gradient is not finite in update {state.step} ({describe(batches)})"
    if state.skipped_in_a_row >= MOST_SKIPPED_IN_A_ROW:
        raise UserError(
            f"{what}, the {state.skipped_in_a_row}th in a row; last good checkpoint: {good}. Lower "
            "training.lr_factor, raise training.warmup_steps, set training.clip_norm, or take precision fp32"
        )
    log.warning("%s: left out, %d so far", what, state.skipped_updates)


@contextlib.contextmanager
def out_of_memory_explained(name: str, step: int, batch: AnyBatch, micro_batch_tokens: int) -> Iterator[None]:
    """Turn a device's or the machine's refusal of memory into a UserError that says what to set."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise UserError(
            f"{name}: out of memory in update {step} with a micro-batch of {describe([batch])}; set "
            f"training.micro_batch_tokens to {micro_batch_tokens // 2} (now {micro_batch_tokens}): an update stays "
            "as large as it is, in more parts"
        ) from error


def is_out_of_memory(error: BaseException) -> bool:
    """CUDA raises its own class, the CPU allocator a plain RuntimeError."""
    refused = "can't allocate memory" in str(error) or "not enough memory" in str(error)
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or refused


def describe(batches: Sequence[AnyBatch]) -> str:
    """Shapes of `batches` in words: sequences x (source + target positions)."""
    shapes = ["{} sequences x {} + {} positions".format(*batch.src_shape, batch.tgt_out.shape[1]) for batch in batches]
    return "; ".join(shapes) or "no micro-batch on this process"
