"""What follows from the kind of a corpus, and is decided nowhere else: the batches of a run.

`corpus.json` says the kind (pipeline/core/records/corpus.py).
"""

from pathlib import Path

import numpy as np

from pipeline.config import RunSpec, load_run
from pipeline.core.errors import UserError
from pipeline.core.layout import RUN_FILE
from pipeline.core.records.corpus import read_corpus
from pipeline.data.batches.fixed_size_batches import TextOnlyBatch, TextOnlyBatches, TextOnlySplit
from pipeline.data.batches.parallel_batches import ParallelBatches, ParallelSplit, TextBatch
from pipeline.data.batches.speech_batches import SpeechBatch, SpeechBatches, SpeechSplit
from pipeline.models.settings import Reads as Kind

AnyBatch = TextBatch | SpeechBatch | TextOnlyBatch
AnyTrainingBatches = ParallelBatches | SpeechBatches | TextOnlyBatches
AnySplit = ParallelSplit | SpeechSplit | TextOnlySplit


def kind_read(spec: RunSpec, of_corpus: Kind | None = None) -> Kind:
    """What a run reads of its corpus: a language model the target side alone, of whatever kind the corpus is.

    of_corpus: the kind of a corpus that need not be encoded yet; None = as it was encoded.

    Raises:
        UserError: the corpus does not have what the model reads.
    """
    reads = spec.model.reads
    if reads != "text" and (kind := of_corpus or read_corpus(Path(spec.corpus)).kind) != reads:
        raise UserError(
            f"{spec.name}: a model of architecture {spec.model.architecture} reads {reads}, but {spec.corpus} is {kind}"
        )
    return reads


def normalised_as(spec: RunSpec) -> Path:
    """The encoded corpus by whose statistics speech is normalised: that of the training in which the encoder learnt.

    Fine-tuning on another domain leaves the encoder as it is (Cold Fusion, section 4.6), and so what it reads.
    """
    while spec.initial:
        spec = load_run(Path(spec.initial) / RUN_FILE)
    return Path(spec.corpus)


def training_batches(spec: RunSpec) -> AnyTrainingBatches:
    """The updates of a run. Raises UserError when its settings do not fit its corpus."""
    corpus, training = Path(spec.corpus), spec.training
    match kind_read(spec):
        case "parallel":
            return ParallelBatches(ParallelSplit(corpus, "train"), training, spec.seed)
        case "speech":
            return SpeechBatches(SpeechSplit(corpus, "train", normalised_as(spec)), training, spec.seed, spec.model)
        case "text":
            return TextOnlyBatches(TextOnlySplit(corpus, "train"), training, spec.seed)
    raise AssertionError(spec.model.reads)


def evaluation_split(
    corpus_folder: Path, split: str, statistics_of: Path | None = None, kind: Kind | None = None
) -> AnySplit:
    """A split to be read whole.

    Args:
        statistics_of: encoded corpus by whose statistics speech is normalised, a model's `normalised_as`; None = this.
        kind: what is read of the corpus; None = all there is.
    """
    if (kind or read_corpus(corpus_folder).kind) == "text":
        return TextOnlySplit(corpus_folder, split)
    return source_split(corpus_folder, split, statistics_of)


def source_split(corpus_folder: Path, split: str, statistics_of: Path | None) -> ParallelSplit | SpeechSplit:
    """The same of a corpus that has a source. Raises UserError for one of text alone."""
    match read_corpus(corpus_folder).kind:
        case "parallel":
            return ParallelSplit(corpus_folder, split)
        case "speech":
            return SpeechSplit(corpus_folder, split, statistics_of)
    raise UserError(f"{corpus_folder}: holds text without a source, of which nothing can be decoded")


def check_targets(spec: RunSpec, pairs: AnySplit) -> None:
    """Raises UserError where the loss of a sequence is no number, as CTC's is where characters outnumber frames."""
    if not isinstance(pairs, SpeechSplit):
        return
    if len(found := np.flatnonzero(pairs.unwritable(spec.model))):
        first = int(found[0])
        raise UserError(
            f"{pairs.name}: {len(found)} utterances can't be scored, the first is utterance {first + 1}: "
            f"its {pairs.tgt_lengths[first] - 1} characters do not fit the output frames of {spec.model.architecture} "
            f"for its {pairs.src_lengths[first]} frames; take them out of the set"
        )


def batch_size(spec: RunSpec, of_corpus: Kind | None = None) -> int:
    """Positions of a batch of a whole split that fit where the training fits: those of its micro-batches."""
    speech = kind_read(spec, of_corpus) == "speech"
    return spec.training.micro_batch_frames if speech else spec.training.micro_batch_tokens
