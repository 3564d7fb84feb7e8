"""What can go wrong in an update, and what to tell whoever has to mend it."""

import contextlib
import logging
from collections.abc import Iterable, Iterator, Sequence

import torch

from pipeline.config import TrainingConfig
from pipeline.core.errors import UserError
from pipeline.data.batches.corpus_batches import AnyBatch
from pipeline.data.batches.speech_batches import SpeechBatch
from pipeline.training.state import TrainingState

log = logging.getLogger(__name__)
MOST_SKIPPED_IN_A_ROW = 10


def skip_update(name: str, state: TrainingState, step: int, batches: Sequence[AnyBatch]) -> str | None:
    """Count update `step`, whose loss or gradient is not finite, as left out; what is wrong once too many are."""
    state.skipped_updates += 1
    state.skipped_in_a_row += 1
    what = f"loss or gradient is not finite in update {step} ({describe(batches)})"
    log.warning("%s: %s: left out, %d so far", name, what, state.skipped_updates)
    too_many = state.skipped_in_a_row >= MOST_SKIPPED_IN_A_ROW
    return f"{what}, the {state.skipped_in_a_row}th in a row" if too_many else None


def diverged(name: str, state: TrainingState, what: str, good: str) -> UserError:
    """What to say of a training that can't go on; good: the last good weights."""
    again = f", again after going back at update {state.returned.at}" if state.returned else ""
    return UserError(
        f"{name}: {what}{again}; last good checkpoint: {good}. Lower training.lr_factor (or lr), raise "
        "training.warmup_steps, set training.clip_norm, or take precision fp32"
    )


def all_finite(tensors: Iterable[torch.Tensor]) -> bool:
    return bool(torch.stack([tensor.isfinite().all() for tensor in tensors]).all())


@contextlib.contextmanager
def out_of_memory_explained(name: str, step: int, batch: AnyBatch, training: TrainingConfig) -> Iterator[None]:
    """Turn a device's or the machine's refusal of memory into a UserError that says what to set."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        key = "micro_batch_frames" if isinstance(batch, SpeechBatch) else "micro_batch_tokens"
        now = getattr(training, key)
        raise UserError(
            f"{name}: out of memory in update {step} with a micro-batch of {describe([batch])}; set "
            f"training.{key} to {now // 2} (now {now}): an update stays "
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
