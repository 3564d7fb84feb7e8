"""Every sequence of a split decoded once, and what is written of it: the outputs, one a line, and a report beside."""

import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.config import DecodingConfig
from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write
from pipeline.core.records.outputs import Decoded
from pipeline.core.schema import parse_json
from pipeline.data.batches.base import EvalBatches
from pipeline.decoding.choose_search import Decoder
from pipeline.decoding.trained_model import TrainedModel
from pipeline.training.machine import precision_on

log = logging.getLogger(__name__)
REPORT_EVERY_S = 5.0


@dataclass(frozen=True)
class Outputs:
    """The symbols of each sequence in the split's order, and how long that took."""

    outputs: list[list[int]]
    seconds: float
    cut: int
    """Outputs that have as many symbols as the model has positions for: each may have been cut short."""

    def report(self, trained: TrainedModel, split: str, config: DecodingConfig, corpus: Path | None = None) -> Decoded:
        """What lies beside the outputs. corpus: None = the run's own"""
        return Decoded(
            split=split,
            lines=len(self.outputs),
            cut_at_last_position=self.cut,
            weights=trained.weights_digest,
            training=trained.training_digest,
            decoding=config.model_dump(),
            precision=precision_on(trained.device, trained.spec.training.precision),
            device=trained.device.type,
            seconds=round(self.seconds, 3),
            sentences_per_second=round(len(self.outputs) / self.seconds, 2),
            corpus=str(corpus) if corpus else None,
        )


def parse_decoding(text: str) -> DecodingConfig:
    """Raises UserError when `text` is not JSON or not a decoding setting."""
    return parse_json(DecodingConfig, text, "--decoding")


def decode_split(trained: TrainedModel, batches: EvalBatches[Any, Any], search: Decoder) -> Outputs:
    """The best hypothesis of each sequence of a split.

    Raises:
        UserError: a source is longer than the model has positions for.
    """
    last = trained.model.max_positions
    if last is not None:
        trained.require_positions(f"{batches.pairs.name}: sources", batches.pairs.src_lengths)
    total = len(batches.pairs.tgt)
    outputs: list[list[int]] = [[]] * total
    finished, started, reported = 0, time.perf_counter(), time.perf_counter()
    for indices, batch in batches:
        with trained.autocast():
            found = search(batch.to(trained.device))
        for sentence, best in zip(indices.tolist(), found, strict=True):
            outputs[sentence] = best.tokens
        finished += len(found)
        if time.perf_counter() - reported > REPORT_EVERY_S:
            reported = time.perf_counter()
            log.info("%d/%d sentences, %.1f a second", finished, total, finished / (reported - started))
    cut = 0 if last is None else sum(len(output) >= last - 1 for output in outputs)
    if cut:
        log.warning("%d of %d outputs end where the model has no more positions", cut, total)
    return Outputs(outputs, time.perf_counter() - started, cut)


def write_outputs(path: Path, lines: list[str], report: Decoded) -> None:
    """One line a sequence, and the report beside them. Raises UserError as `write_lines`."""
    write_lines(path, lines)
    report.write(path.with_suffix(".json"))
    log.info("%s: %d lines, %.1f a second", path, report.lines, report.sentences_per_second)


def write_lines(path: Path, lines: list[str]) -> None:
    """One line a sentence. Raises UserError when a sentence holds a line feed."""
    if any("\n" in line for line in lines):
        raise UserError(f"{path}: a translation holds a line feed; the subword model has one in its vocabulary")
    with atomic_write(path) as handle:
        handle.writelines(line + "\n" for line in lines)
