"""What is about to be trained, on what and how, in the log."""

import logging

from pipeline.config import RunSpec, TrainingConfig
from pipeline.core.records.training import Machine
from pipeline.data.batches.corpus_batches import AnyTrainingBatches
from pipeline.models.seq2seq import Seq2Seq, count_parameters, parameters_by_part
from pipeline.training.distributed import Group
from pipeline.training.state import TrainingState

log = logging.getLogger(__name__)


def describe(
    spec: RunSpec, model: Seq2Seq, batches: AnyTrainingBatches, group: Group, facts: Machine, state: TrainingState
) -> None:
    """Say what is about to be trained, and on what."""
    training = spec.training
    where, millions = f"{spec.name} on {spec.dataset} at scale {spec.scale}", count_parameters(model) / 1e6
    log.info("%s: %.2f M parameters", where, millions)
    log.info("  parts, frozen ones too: %s", ", ".join(f"{k} {n:,}" for k, n in parameters_by_part(model).items()))
    log.info(
        "  %d updates of %s, %d an epoch; padding %.1f %%; %d pairs over %d subwords left out",
        *(training.max_steps, size_of_update(training, batches), len(batches), 100 * batches.padding),
        *(batches.left_out, training.max_length),
    )
    log.info(
        "  %s on %s, %d threads, %d process(es), torch %s; %s",
        *(facts.precision(training.precision), facts.device, facts.threads, group.size, facts.torch),
        f"resumed after update {state.step}" if state.step else "from the start",
    )
    parts = len(batches.largest_micro_batches())
    if parts % group.size:
        log.warning(
            "  about %d micro-batches an update do not divide among %d processes: some will wait for others; lower "
            "training.micro_batch_tokens (now %d)",
            *(parts, group.size, training.micro_batch_tokens),
        )


def size_of_update(training: TrainingConfig, batches: AnyTrainingBatches) -> str:
    """In words."""
    if training.sentences_per_update:
        return f"{training.sentences_per_update} pairs"
    return f"{training.tokens_per_update} tokens per side ({batches.sequences // len(batches)} pairs)"
