"""How large a corpus is, measured once it is encoded and expected before, and what a training update holds of it."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from pipeline.config import TrainingConfig
from pipeline.data.alphabet import Alphabet
from pipeline.data.batches import cells, order_by_cell, update_cuts
from pipeline.data.counted_updates import CountedUpdates
from pipeline.data.dataset import AnyDataset, SpokenRecord, SymbolVocabulary, TextRecord
from pipeline.data.frame_store import FEATURES, FRAMES_A_SECOND, FrameStore
from pipeline.data.token_store import TokenStore
from pipeline.data.vocabulary import vocab_sizes
from pipeline.errors import UserError
from pipeline.files import read_json

SAMPLED_PAIRS = 100_000
LENGTH_SPREAD = 0.55  # standard deviation of the logarithm of sentence lengths, as in news text
RATIO_SPREAD = 0.2  # the same of the ratio of target to source length


@dataclass(frozen=True)
class UpdateShape:
    """The mean update of a training: positions with padding a side, sentences, real target tokens, mean lengths."""

    src_positions: float
    tgt_positions: float
    tgt_tokens: float
    src_length: float
    tgt_length: float


@dataclass(frozen=True)
class Corpus:
    """Sizes of one dataset.

    Attributes:
        pairs: by split.
        src_subwords, tgt_subwords: mean of a training pair, EOS not counted; of speech, frames and characters; of text
            without a source, 0 and characters.
        src_vocab, tgt_vocab: entries.
        encoded: folder of the encoded corpus, None when the numbers are expected ones.
    """

    pairs: dict[str, int]
    src_subwords: float
    tgt_subwords: float
    src_vocab: int
    tgt_vocab: int
    encoded: Path | None
    kind: str = "parallel"
    shapes: dict[tuple[int | None, ...], UpdateShape] = field(default_factory=dict, init=False, compare=False)

    @classmethod
    def of(cls, dataset: AnyDataset, corpus: Path) -> "Corpus":
        """Measured where the corpus is encoded, else as the dataset file expects.

        Raises:
            UserError: the corpus is not encoded, and its dataset file expects nothing.
        """
        record = corpus / "encoded/corpus.json"
        if record.exists():
            return cls.measured(read_json(record), record.parent)
        if dataset.size is None:
            raise UserError(f"workflow/datasets/{dataset.name}.yaml: `size` is missing; or encode the corpus first")
        size = dataset.size
        if isinstance(dataset, SpokenRecord | TextRecord):
            speech = isinstance(dataset, SpokenRecord)
            pairs = dict(zip(dataset.split_names, size.utterances if speech else size.sentences, strict=True))
            frames = FRAMES_A_SECOND * size.seconds if speech else 0.0
            symbols = len(Alphabet())
            return cls(pairs, frames, size.characters, symbols, symbols, None, "speech" if speech else "text")
        joint = dataset.tgt_subwords is None
        symbols = isinstance(dataset.tgt_subwords, SymbolVocabulary)
        tgt_vocab = size.tgt_vocab if symbols else (dataset.subwords if joint else dataset.tgt_subwords).vocab_size
        pairs = dict(zip(dataset.split_names, size.pairs, strict=True))
        return cls(pairs, size.src_subwords, size.tgt_subwords, dataset.subwords.vocab_size, tgt_vocab, None)

    @classmethod
    def measured(cls, record: dict, encoded: Path) -> "Corpus":
        train, (src_vocab, tgt_vocab) = record["splits"]["train"], vocab_sizes(record)
        return cls(
            pairs={split: counts["pairs"] for split, counts in record["splits"].items()},
            src_subwords=train.get("src_tokens", 0) / train["pairs"],
            tgt_subwords=train["tgt_tokens"] / train["pairs"],
            src_vocab=src_vocab,
            tgt_vocab=tgt_vocab,
            encoded=encoded,
            kind=record.get("kind", "parallel"),
        )

    @cached_property
    def lengths(self) -> tuple[np.ndarray, np.ndarray]:
        """Subwords a side of a sample of training pairs, EOS counted: real ones, or drawn about the expected means."""
        if self.encoded:
            tgt = TokenStore(self.encoded / "train.tgt").lengths()
            step = max(1, self.pairs["train"] // SAMPLED_PAIRS)
            return tuple(lengths[::step].astype(np.int64) + 1 for lengths in (self.encoded_sources(len(tgt)), tgt))
        rng = np.random.default_rng(1)
        count = min(self.pairs["train"], SAMPLED_PAIRS)
        common = rng.normal(0, LENGTH_SPREAD, count)
        sides = []
        for mean in (self.src_subwords, self.tgt_subwords):
            drawn = np.exp(common + rng.normal(0, RATIO_SPREAD / 2, count)) * mean / MEAN_FACTOR
            sides.append(np.maximum(1, np.round(drawn)).astype(np.int64) + 1)
        return sides[0], sides[1]

    def encoded_sources(self, pairs: int) -> np.ndarray:
        """Lengths of the encoded training sources, (pairs,)."""
        match self.kind:
            case "speech":
                return FrameStore(self.encoded / "train", FEATURES).lengths()
            case "text":
                return np.zeros(pairs, np.int32)
        return TokenStore(self.encoded / "train.src").lengths()

    def update_shape(self, training: TrainingConfig) -> UpdateShape:
        """What the updates hold on average, cut from the lengths as the training cuts them."""
        counted = training.sentences_per_update, training.max_length
        parallel = self.kind == "parallel"
        key = (training.tokens_per_update, *counted) if parallel else (training.max_frames, *counted)
        if key not in self.shapes:
            self.shapes[key] = self.cut(*key) if parallel else self.counted(*key)
        return self.shapes[key]

    def counted(self, max_frames: int, sentences_per_update: int, max_length: int) -> UpdateShape:
        """Of updates of so many utterances, or sentences without a source."""
        src, tgt = self.lengths
        src, tgt = (side[(src <= max_frames + 1) & (tgt <= max_length + 1)] for side in (src, tgt))
        by_length = src if self.kind == "speech" else tgt
        updates = CountedUpdates(np.arange(len(tgt)), by_length, sentences_per_update, seed=1, sorted_first=False)
        rows = np.diff(updates.cuts)
        widths = [np.maximum.reduceat(side[updates.shuffled(1)], updates.cuts[:-1]) for side in (src, tgt)]
        positions = [float((rows * width).mean()) for width in widths]
        if self.kind == "text":
            positions[0] = 0.0
        lengths = (position / rows.mean() for position in positions)
        return UpdateShape(*positions, float(tgt.sum() / len(rows)), *lengths)

    def cut(self, tokens_per_update: int | None, sentences_per_update: int | None, max_length: int) -> UpdateShape:
        src, tgt = self.lengths
        longest = max_length + 1 if tokens_per_update is None else min(max_length + 1, tokens_per_update)
        fits = np.maximum(src, tgt) <= longest
        src, tgt = src[fits], tgt[fits]
        order, starts = order_by_cell(cells(src, tgt), seed=1)
        bounds = np.append(starts, len(order))
        widths = [np.maximum.reduceat(side[order], starts) for side in (src, tgt)]
        cuts, update_widths = update_cuts(bounds, *widths, tokens_per_update, sentences_per_update)
        rows = np.diff(cuts)
        positions = (rows[:, None] * update_widths).mean(axis=0)
        sentences = rows.mean()
        return UpdateShape(*positions.tolist(), float(tgt.sum() / len(rows)), *(positions / sentences).tolist())


MEAN_FACTOR = float(np.exp((LENGTH_SPREAD**2 + (RATIO_SPREAD / 2) ** 2) / 2))
"""Mean of the drawn factor, which is log-normal."""
