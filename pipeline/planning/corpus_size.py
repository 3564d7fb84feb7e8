"""Corpus sizes, measured or expected, and the mean shape of a training step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import get_args

import numpy as np

from pipeline.config import TrainingConfig
from pipeline.core.errors import UserError
from pipeline.core.layout import CORPUS_FILE
from pipeline.core.records import corpus as records
from pipeline.data import dataset as datasets
from pipeline.data.batches.steps import FixedSizeSteps, cut_into_steps, group_into_cells
from pipeline.data.dataset.speech import SpeechSize, TextSize
from pipeline.data.sequence_store import FEATURES, FRAMES_PER_SECOND, FrameStore, TokenStore
from pipeline.data.text.vocabulary import Alphabet
from pipeline.models.settings import Reads

SAMPLED_PAIRS = 100_000
LENGTH_SPREAD = 0.55
"""Standard deviation of the logarithm of sentence lengths, as in news text."""
RATIO_SPREAD = 0.2
"""Standard deviation of the logarithm of target over source length."""


@dataclass(frozen=True)
class StepShape:
    """The mean training step.

    Attributes:
        src_positions: Source positions with padding.
        tgt_positions: Target positions with padding.
        tgt_tokens: Target tokens without padding.
        src_length: Mean source length.
        tgt_length: Mean target length.
    """

    src_positions: float
    tgt_positions: float
    tgt_tokens: float
    src_length: float
    tgt_length: float


@dataclass(frozen=True)
class Corpus:
    """Sizes of one dataset.

    Attributes:
        pairs: Sentence pairs or utterances by split.
        src_subwords: Mean source subwords of a training pair without EOS; of speech, frames; 0 without a source.
        tgt_subwords: Mean target subwords or characters without EOS.
        src_vocab: Source entries.
        tgt_vocab: Target entries.
        encoded: Folder of the encoded corpus; None if the sizes are expected ones.
        shapes: Cache of step shapes.
    """

    pairs: Mapping[datasets.SplitName, int]
    src_subwords: float
    tgt_subwords: float
    src_vocab: int
    tgt_vocab: int
    encoded: Path | None
    kind: Reads = "parallel"
    shapes: dict[tuple[int | None, ...], StepShape] = field(default_factory=dict, init=False, compare=False)

    @classmethod
    def of(cls, dataset: datasets.AnyDataset, corpus: Path) -> "Corpus":
        """Return the sizes of an encoded corpus, or those that its dataset file expects.

        Raises:
            UserError: The corpus is not encoded, and its dataset file expects nothing.
        """
        encoded = corpus / "encoded"
        if (encoded / CORPUS_FILE).exists():
            return cls.measured(records.read_corpus(encoded), encoded)
        symbols = len(Alphabet())
        match dataset:
            case datasets.SpokenRecord(size=SpeechSize() as size):
                pairs, frames = by_split(dataset, size.utterances), FRAMES_PER_SECOND * size.seconds
                return cls(pairs, frames, size.characters, symbols, symbols, None, "speech")
            case datasets.TextRecord(size=TextSize() as size):
                return cls(by_split(dataset, size.sentences), 0.0, size.characters, symbols, symbols, None, "text")
            case datasets.TokenisedRecord(size=datasets.CorpusSize() as size):
                pairs, tgt_vocab = by_split(dataset, size.pairs), expected_tgt_vocab(dataset, size)
                return cls(pairs, size.src_subwords, size.tgt_subwords, dataset.subwords.vocab_size, tgt_vocab, None)
        raise UserError(f"workflow/datasets/{dataset.name}.yaml: `size` is missing; add it, or encode the corpus first")

    @classmethod
    def measured(
        cls, record: records.ParallelCorpus | records.SpeechCorpus | records.TextCorpus, encoded: Path
    ) -> "Corpus":
        """Return the sizes of an encoded corpus."""
        train, (src_vocab, tgt_vocab) = record.splits["train"], record.vocab_sizes
        return cls(
            pairs={
                split: record.splits[split].pairs for split in get_args(datasets.SplitName) if split in record.splits
            },
            src_subwords=(train.src_tokens if isinstance(train, records.ParallelSizes | records.SpeechSizes) else 0)
            / train.pairs,
            tgt_subwords=train.tgt_tokens / train.pairs,
            src_vocab=src_vocab,
            tgt_vocab=tgt_vocab,
            encoded=encoded,
            kind=record.kind,
        )

    def pairs_of(self, split: str) -> int:
        """Return the pairs of a split.

        Raises:
            KeyError: There is no such split.
        """
        return {str(name): pairs for name, pairs in self.pairs.items()}[split]

    @cached_property
    def lengths(self) -> tuple[np.ndarray, np.ndarray]:
        """Return source and target lengths with EOS of sampled training pairs, real or drawn around the means."""
        if self.encoded:
            tgt = TokenStore(self.encoded / "train.tgt").lengths()
            src, step = self.source_lengths(self.encoded, len(tgt)), max(1, self.pairs["train"] // SAMPLED_PAIRS)
            return src[::step].astype(np.int64) + 1, tgt[::step].astype(np.int64) + 1
        rng = np.random.default_rng(1)
        count = min(self.pairs["train"], SAMPLED_PAIRS)
        common = rng.normal(0, LENGTH_SPREAD, count)
        sides = []
        for mean in (self.src_subwords, self.tgt_subwords):
            lengths = np.exp(common + rng.normal(0, RATIO_SPREAD / 2, count)) * mean / MEAN_FACTOR
            sides.append(np.maximum(1, np.round(lengths)).astype(np.int64) + 1)
        return sides[0], sides[1]

    def source_lengths(self, encoded: Path, pairs: int) -> np.ndarray:
        """Return the lengths of the sources of training `pairs` in `encoded`, shape (pairs,); 0 without a source."""
        match self.kind:
            case "speech":
                return FrameStore(encoded / "train", FEATURES).lengths()
            case "text":
                return np.zeros(pairs, np.int32)
        return TokenStore(encoded / "train.src").lengths()

    def step_shape(self, training: TrainingConfig) -> StepShape:
        """Return the mean training step, cut from the lengths as the training cuts its batches."""
        counted = training.sentences_per_update, training.max_length
        parallel = self.kind == "parallel"
        key = (training.tokens_per_update, *counted) if parallel else (training.max_frames, *counted)
        if key not in self.shapes:
            self.shapes[key] = self.parallel_step(training) if parallel else self.fixed_size_step(training)
        return self.shapes[key]

    def fixed_size_step(self, training: TrainingConfig) -> StepShape:
        """Return the mean step of trainings whose batches count utterances, or sentences without a source.

        Raises:
            UserError: The training has no number of sentences per step.
        """
        src, tgt = self.lengths
        fits = (src <= training.max_frames + 1) & (tgt <= training.max_length + 1)
        is_speech = self.kind == "speech"
        src, tgt = fitting(src, tgt, fits, "max_frames or training.max_length" if is_speech else "max_length")
        by_length = src if is_speech else tgt
        sentences = training.sentences_per_update
        if sentences is None:
            raise UserError(f"batches of {self.kind} are counted in sentences: set training.sentences_per_update")
        steps = FixedSizeSteps(np.arange(len(tgt)), by_length, sentences, seed=1, sorted_first=False)
        rows = np.diff(steps.cuts)
        widths = [np.maximum.reduceat(side[steps.shuffled(1)], steps.cuts[:-1]) for side in (src, tgt)]
        positions = [float((rows * width).mean()) for width in widths]
        if self.kind == "text":
            positions[0] = 0.0
        return mean_step_shape(positions, float(tgt.sum() / len(rows)), float(rows.mean()))

    def parallel_step(self, training: TrainingConfig) -> StepShape:
        """Return the mean step of trainings on sentence pairs."""
        src, tgt = self.lengths
        max_length, tokens_per_update = training.max_length, training.tokens_per_update
        longest = max_length + 1 if tokens_per_update is None else min(max_length + 1, tokens_per_update)
        fits = np.maximum(src, tgt) <= longest
        src, tgt = fitting(src, tgt, fits, "max_length" if longest > max_length else "tokens_per_update")
        _, bounds, widths = group_into_cells(src, tgt)
        cuts, step_widths = cut_into_steps(bounds, widths, tokens_per_update, training.sentences_per_update)
        rows = np.diff(cuts)
        positions = (rows[:, None] * step_widths).mean(axis=0).tolist()
        return mean_step_shape(positions, float(tgt.sum() / len(rows)), float(rows.mean()))


def fitting(src: np.ndarray, tgt: np.ndarray, fits: np.ndarray, limit: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the lengths of `src` and `tgt` where `fits` is true; all are of shape (pairs,).

    Raises:
        UserError: None fits; the message names the `limit`, a setting of trainings.
    """
    if not fits.any():
        shortest = np.argmin(np.maximum(src, tgt))
        raise UserError(
            f"no training sequence is short enough, the shortest has lengths of {src[shortest]} and {tgt[shortest]} "
            f"with EOS; raise training.{limit}"
        )
    return src[fits], tgt[fits]


def by_split(dataset: datasets.AnyDataset, counts: Sequence[int]) -> dict[datasets.SplitName, int]:
    """Return the sizes of a dataset by the name of the split."""
    return dict(zip(dataset.split_names, counts, strict=True))


def expected_tgt_vocab(dataset: datasets.TokenisedDataset, size: datasets.CorpusSize) -> int:
    """Return the expected number of entries of the target vocabulary.

    Raises:
        UserError: The vocabulary is all symbols of the text, and their number is not given.
    """
    settings = dataset.tgt_subwords or dataset.subwords
    found = size.tgt_vocab if isinstance(settings, datasets.SymbolVocabulary) else settings.vocab_size
    if found is None:
        file = f"workflow/datasets/{dataset.name}.yaml"
        raise UserError(f"{file}: `size.tgt_vocab` is missing; add it, or encode the corpus first")
    return found


def mean_step_shape(positions: Sequence[float], tgt_tokens: float, sentences: float) -> StepShape:
    """Return a step shape of a mean step's padded source and target `positions`, `tgt_tokens` and `sentences`."""
    src, tgt = positions
    return StepShape(src, tgt, tgt_tokens, src / sentences, tgt / sentences)


MEAN_FACTOR = float(np.exp((LENGTH_SPREAD**2 + (RATIO_SPREAD / 2) ** 2) / 2))
"""Mean of the drawn factor, which is log-normal."""
