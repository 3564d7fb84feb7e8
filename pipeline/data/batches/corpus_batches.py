"""Batches by kind of corpus, the only place that maps a kind to its batches.

`corpus.json` names the kind (pipeline/core/records/corpus.py).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Generic

import numpy as np

from pipeline.config import RunSpec, load_run
from pipeline.core.errors import UserError, count_of
from pipeline.core.layout import RUN_FILE
from pipeline.core.records.corpus import read_corpus
from pipeline.data.batches.base import BatchT, SplitT
from pipeline.data.batches.fixed_size_batches import TextOnlyBatch, TextOnlyBatches, TextOnlySplit
from pipeline.data.batches.parallel_batches import ParallelBatches, ParallelSplit, TextBatch
from pipeline.data.batches.speech_batches import SpeechBatch, SpeechBatches, SpeechSplit
from pipeline.models.settings import Reads as Kind

AnyBatch = TextBatch | SpeechBatch | TextOnlyBatch
AnyTrainingBatches = ParallelBatches | SpeechBatches | TextOnlyBatches
AnySplit = ParallelSplit | SpeechSplit | TextOnlySplit


def input_kind(spec: RunSpec, of_corpus: Kind | None = None) -> Kind:
    """Return what the run of a `spec` reads of its corpus; a language model reads the target side of any corpus.

    `of_corpus` is the kind of a corpus that need not be encoded yet; None reads the record of the encoded corpus.

    Raises:
        UserError: The corpus does not have what the model reads.
    """
    reads = spec.model.reads
    if reads != "text" and (kind := of_corpus or read_corpus(Path(spec.corpus)).kind) != reads:
        raise UserError(
            f"{spec.name}: a model of architecture {spec.model.architecture} reads {reads}, but {spec.corpus} is {kind}"
        )
    return reads


def normalisation_corpus(spec: RunSpec) -> Path:
    """Return the encoded corpus that trained the encoder, whose statistics normalise speech.

    Fine-tuning on another domain leaves the encoder as it is (Cold Fusion, section 4.6), and so its input.
    """
    while spec.initial:
        spec = load_run(Path(spec.initial) / RUN_FILE)
    return Path(spec.corpus)


def training_batches(spec: RunSpec) -> AnyTrainingBatches:
    """Return the training batches of a run.

    Raises:
        UserError: The settings do not fit the corpus.
    """
    corpus, training = Path(spec.corpus), spec.training
    kind = input_kind(spec)
    match kind:
        case "parallel":
            return ParallelBatches(ParallelSplit(corpus, "train"), training, spec.seed)
        case "speech":
            return SpeechBatches(
                SpeechSplit(corpus, "train", normalisation_corpus(spec)), training, spec.seed, spec.model
            )
        case "text":
            return TextOnlyBatches(TextOnlySplit(corpus, "train"), training, spec.seed)


def evaluation_split(spec: RunSpec, corpus_folder: Path, split: str) -> AnySplit:
    """Return a `split` of the encoded corpus in `corpus_folder` as the model of a `spec` reads it.

    Raises:
        UserError: The run's corpus does not have what the model reads.
    """
    if input_kind(spec) == "text":
        return TextOnlySplit(corpus_folder, split)
    return source_split(spec, corpus_folder, split)


def source_split(spec: RunSpec, corpus_folder: Path, split: str) -> ParallelSplit | SpeechSplit:
    """Return a split that has a source side; speech is normalised as in the training of the model of a `spec`.

    Raises:
        UserError: The corpus contains text only.
    """
    match read_corpus(corpus_folder).kind:
        case "parallel":
            return ParallelSplit(corpus_folder, split)
        case "speech":
            return SpeechSplit(corpus_folder, split, normalisation_corpus(spec))
    raise UserError(f"{corpus_folder}: has no source to decode: it contains text only")


def check_targets(spec: RunSpec, pairs: AnySplit) -> None:
    """Check that the loss of every sequence is finite; CTC needs as many output frames as characters.

    Raises:
        UserError: Some transcripts have too many characters.
    """
    if not isinstance(pairs, SpeechSplit):
        return
    if len(found := np.flatnonzero(pairs.exceeds_output(spec.model))):
        first = int(found[0])
        raise UserError(
            f"{pairs.name}: {count_of(len(found), 'utterance')} can't be scored; the first is utterance {first + 1}: "
            f"its {pairs.tgt_lengths[first] - 1} characters do not fit the output frames of {spec.model.architecture} "
            f"for its {pairs.src_lengths[first]} frames; remove them from the split"
        )


def batch_size(spec: RunSpec, of_corpus: Kind | None = None) -> int:
    """Return the positions of an evaluation batch, those of a micro-batch, which fits; as `input_kind`."""
    speech = input_kind(spec, of_corpus) == "speech"
    return spec.training.micro_batch_frames if speech else spec.training.micro_batch_tokens


class EvalBatches(Generic[SplitT, BatchT]):
    """Batches of similar length that hold every sequence of a split once, longest first.

    Iterating yields (indices (B,), batch).

    Args:
        pairs: Split to evaluate on.
        batch_positions: Maximum number of source positions of a batch, with padding; a single sequence may have more.
    """

    def __init__(self, pairs: SplitT, batch_positions: int):
        self.pairs, self.batch_positions = pairs, batch_positions

    def __iter__(self) -> Iterator[tuple[np.ndarray, BatchT]]:
        return ((indices, self.pairs.batch(indices)) for indices in self.parts())

    def parts(self) -> Iterator[np.ndarray]:
        """Yield the sequences (B,) of each batch."""
        src_lengths = self.pairs.src_lengths
        order = np.lexsort((self.pairs.tgt_lengths, src_lengths))[::-1]  # by target among sources of equal length
        begin = 0
        while begin < len(order):
            rows = max(1, self.batch_positions // int(src_lengths[order[begin]]))
            yield order[begin : begin + rows]
            begin += rows
