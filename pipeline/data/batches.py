"""Batches of sentence pairs of like length, each a pure function of (seed, step).

The pairs are put into cells of like target and source length, and the cells in an order in which neighbours are of
like size. An epoch permutes the pairs inside every cell; the cells themselves stay, so the places where the order is
cut into updates, and their number, are those of every epoch. The order of the updates is permuted as well. Random
numbers come from Philox, a counter-based generator keyed by (seed, epoch): an update draws those of its own places
alone, and a resumed run finds its place in the data by computing it.

An update holds at most `tokens_per_update` positions a side, padding counted, or `sentences_per_update` pairs. What it
holds depends neither on `micro_batch_tokens`, the memory bound by which it is split, nor on the number of processes
that share the parts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pipeline.data.token_store import TokenStore
from pipeline.errors import UserError
from pipeline.symbols import BOS, EOS, PAD

# Relative widths of the cells: narrow enough that little is padded, wide enough that an update meets new neighbours.
TGT_CELL_WIDTH, SRC_CELL_WIDTH = 1 / 12, 1 / 6
LARGEST_CELL = 1 << 14


@dataclass(frozen=True)
class TextBatch:
    """B sentence pairs, padded with PAD: src (B, S) ends in EOS, tgt_in (B, T) = BOS + y, tgt_out (B, T) = y + EOS."""

    src: Tensor
    tgt_in: Tensor
    tgt_out: Tensor

    @property
    def src_mask(self) -> Tensor:
        """(B, S) bool, True at real positions."""
        return self.src != PAD

    @property
    def expected_length(self) -> Tensor:
        """(B,): symbols that an output may have before it counts as long, EOS counted on neither side."""
        return self.src_mask.sum(1) - 1

    @property
    def src_shape(self) -> tuple[int, int]:
        """Sentences and source positions of the longest."""
        return self.src.shape[0], self.src.shape[1]

    @property
    def num_tokens(self) -> int:
        """Target positions that are predicted, EOS included, padding not."""
        return int((self.tgt_out != PAD).sum())

    def to(self, device: torch.device | str) -> "TextBatch":
        return TextBatch(*(side.to(device, non_blocking=True) for side in (self.src, self.tgt_in, self.tgt_out)))


class ParallelSplit:
    """Both sides of one split of an encoded corpus; `src_lengths`, `tgt_lengths` (pairs,) count EOS."""

    def __init__(self, corpus_folder: Path, split: str):
        self.name = f"{corpus_folder}: split {split}"
        self.src = TokenStore(Path(corpus_folder) / f"{split}.src")
        self.tgt = TokenStore(Path(corpus_folder) / f"{split}.tgt")
        if len(self.src) != len(self.tgt):
            raise UserError(
                f"{self.name}: {len(self.src)} source but {len(self.tgt)} target sentences; run `encode` again"
            )
        self.src_lengths = self.src.lengths() + 1
        self.tgt_lengths = self.tgt.lengths() + 1

    def batch(self, indices: np.ndarray) -> TextBatch:
        src = self.src.padded(indices, first=None, last=EOS, pad=PAD)
        tgt_in = self.tgt.padded(indices, first=BOS, last=None, pad=PAD)
        tgt_out = self.tgt.padded(indices, first=None, last=EOS, pad=PAD)
        return TextBatch(*map(torch.from_numpy, (src, tgt_in, tgt_out)))


class TrainingBatches:
    """The updates of a training run; `len()` is their number in an epoch, the same in every epoch.

    Args:
        tokens_per_update: positions a side and update at most, padding counted; None when pairs are counted.
        micro_batch_tokens: positions a side and micro-batch at most.
        max_length: pairs with more subwords on a side (EOS not counted) are left out, counted in `left_out`.
        sentences_per_update: pairs an update at most; None when positions are counted.

    Raises:
        UserError: nothing is left to train on, or a single pair exceeds a budget.
    """

    def __init__(
        self,
        corpus_folder: Path,
        split: str,
        tokens_per_update: int | None,
        micro_batch_tokens: int,
        max_length: int,
        seed: int,
        sentences_per_update: int | None = None,
    ):
        self.pairs = ParallelSplit(corpus_folder, split)
        self.micro_batch_tokens, self.seed = micro_batch_tokens, seed
        fits = np.maximum(self.pairs.src_lengths, self.pairs.tgt_lengths) <= max_length + 1
        self.left_out = int(len(fits) - fits.sum())
        kept = np.flatnonzero(fits).astype(np.uint32)
        if not len(kept):
            raise UserError(f"{self.pairs.name}: no pair of at most {max_length} subwords a side; raise `max_length`")
        src_lengths, tgt_lengths = self.pairs.src_lengths[kept], self.pairs.tgt_lengths[kept]
        self._check_budgets(int(max(src_lengths.max(), tgt_lengths.max())), tokens_per_update)
        order, starts = order_by_cell(cells(src_lengths, tgt_lengths), seed)
        self.order = kept[order]
        self.cell_bounds = np.append(starts, len(order))
        widths = [np.maximum.reduceat(lengths[order], starts) for lengths in (src_lengths, tgt_lengths)]
        self.cuts, self.update_widths = update_cuts(self.cell_bounds, *widths, tokens_per_update, sentences_per_update)
        self._known_order = -1, np.empty(0, np.int64)
        real = int(src_lengths.sum() + tgt_lengths.sum())
        self.padding = 1 - real / int((np.diff(self.cuts) * self.update_widths.sum(axis=1)).sum())

    def _check_budgets(self, longest: int, tokens_per_update: int | None) -> None:
        for key, budget in (("tokens_per_update", tokens_per_update), ("micro_batch_tokens", self.micro_batch_tokens)):
            if budget is not None and longest > budget:
                raise UserError(
                    f"{self.pairs.name}: a pair has {longest} subwords on a side but {key} is {budget}; "
                    f"raise {key} or lower max_length"
                )

    def __len__(self) -> int:
        return len(self.cuts) - 1

    @property
    def sequences(self) -> int:
        """Pairs of an epoch."""
        return len(self.order)

    def epoch_of(self, step: int) -> int:
        return step // len(self)

    def update(self, step: int, rank: int = 0, world_size: int = 1) -> list[TextBatch]:
        """The micro-batches of global update `step` (from 0) that fall to process `rank` of `world_size`.

        Micro-batch i of the update goes to process i % world_size: the k-th returned is number rank + world_size * k.
        """
        return self._split(self.pairs_of(step))[rank::world_size]

    def pairs_of(self, step: int) -> np.ndarray:
        """Numbers of the pairs in global update `step`, those of like length together."""
        epoch, place = divmod(step, len(self))
        if self._known_order[0] != epoch:  # kept, because many updates of one epoch follow each other
            self._known_order = epoch, np.argsort(random_keys(self.seed, epoch, 0, len(self), stream=1))
        update = self._known_order[1][place]
        return self._pairs_between(epoch, *self.cuts[update : update + 2])

    def largest(self) -> list[TextBatch]:
        """The update whose micro-batches need most memory (that of attention), to fail early if it does not fit."""
        width = self.update_widths.max(axis=1)
        rows = np.minimum(np.diff(self.cuts), self.micro_batch_tokens // width)
        heaviest = int(np.argmax(rows * width**2))
        return self._split(self._pairs_between(0, *self.cuts[heaviest : heaviest + 2]))

    def _pairs_between(self, epoch: int, begin: int, end: int) -> np.ndarray:
        """The pairs that epoch `epoch` puts at places begin … end - 1 of the order."""
        first_cell = np.searchsorted(self.cell_bounds, begin, side="right") - 1
        last_cell = np.searchsorted(self.cell_bounds, end, side="left")
        bounds = self.cell_bounds[first_cell : last_cell + 1]
        first, last = int(bounds[0]), int(bounds[-1])
        cell = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        mixed = np.lexsort((random_keys(self.seed, epoch, first, last, stream=0), cell))
        return self.order[first:last][mixed[begin - first : end - first]].astype(np.int64)

    def _split(self, pairs: np.ndarray) -> list[TextBatch]:
        src_lengths, tgt_lengths = self.pairs.src_lengths[pairs], self.pairs.tgt_lengths[pairs]
        rows = self.micro_batch_tokens // int(max(src_lengths.max(), tgt_lengths.max()))
        parts = -(-len(pairs) // rows)
        return [self.pairs.batch(part) for part in np.array_split(pairs, parts)]


class EvaluationBatches:
    """Every pair of a split exactly once, in batches of like length, the longest first: (indices (B,), TextBatch).

    A batch holds at most `batch_tokens` source positions, padding counted, but always one pair.
    """

    def __init__(self, corpus_folder: Path, split: str, batch_tokens: int):
        self.pairs, self.batch_tokens = ParallelSplit(corpus_folder, split), batch_tokens

    def __iter__(self) -> Iterator[tuple[np.ndarray, TextBatch]]:
        for indices in length_order(self.pairs.src_lengths, self.pairs.tgt_lengths, self.batch_tokens):
            yield indices, self.pairs.batch(indices)


def length_order(src_lengths: np.ndarray, tgt_lengths: np.ndarray, budget: int) -> Iterator[np.ndarray]:
    """Numbers of sequences, longest source first, in groups of at most `budget` padded source positions."""
    order = np.lexsort((tgt_lengths, src_lengths))[::-1]
    begin = 0
    while begin < len(order):
        rows = max(1, budget // int(src_lengths[order[begin]]))
        yield order[begin : begin + rows]
        begin += rows


def cells(src_lengths: np.ndarray, tgt_lengths: np.ndarray) -> np.ndarray:
    """The cell of each pair, (pairs,) uint16: a target bucket times a source bucket, numbered in a serpentine."""
    src_bucket = bucket_table(int(src_lengths.max()), SRC_CELL_WIDTH)[src_lengths]
    tgt_bucket = bucket_table(int(tgt_lengths.max()), TGT_CELL_WIDTH)[tgt_lengths]
    columns = int(src_bucket.max()) + 1
    column = np.where(tgt_bucket % 2, columns - 1 - src_bucket, src_bucket)
    return (tgt_bucket * columns + column).astype(np.uint16)


def order_by_cell(cell_of_pair: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The pairs, cell after cell, (pairs,) uint32, and the first place of every cell.

    Large cells are cut, so that mixing one stays cheap; their pairs are shuffled before, so that each part draws from
    all sources of the corpus.
    """
    shuffled = np.random.Generator(np.random.Philox(seed)).permutation(np.arange(len(cell_of_pair), dtype=np.uint32))
    order = shuffled[np.argsort(cell_of_pair[shuffled], kind="stable")]
    changes = np.flatnonzero(np.diff(cell_of_pair[order].astype(np.int32), prepend=-1))
    return order, np.union1d(changes, np.arange(0, len(order), LARGEST_CELL))


def bucket_table(longest: int, width: float) -> np.ndarray:
    """Bucket of each length 0 … longest; a bucket that begins at length n spans max(1, n * width) lengths."""
    table = np.zeros(longest + 1, dtype=np.int32)
    begin, bucket = 1, 0
    while begin <= longest:
        end = begin + max(1, int(begin * width))
        table[begin:end] = bucket
        begin, bucket = end, bucket + 1
    return table


def update_cuts(
    bounds, src_widths, tgt_widths, tokens: int | None, sentences: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Where the places are cut into updates of at most so many `tokens` a side, or so many `sentences`; see `cut`."""
    if sentences is None:
        return even_cuts(bounds, src_widths, tgt_widths, tokens)
    places = int(bounds[-1])
    cuts = np.linspace(0, places, -(-places // sentences) + 1).astype(np.int64)
    first = np.searchsorted(bounds, cuts[:-1], side="right") - 1
    last = np.searchsorted(bounds, cuts[1:], side="left")
    cells_of = [slice(*span) for span in zip(first, last, strict=True)]
    return cuts, np.array([(src_widths[span].max(), tgt_widths[span].max()) for span in cells_of])


def even_cuts(bounds, src_widths, tgt_widths, budget) -> tuple[np.ndarray, np.ndarray]:
    """`cut` with the smallest budget that gives no more updates than `budget` does: no small one is left over."""
    widest = int(max(src_widths.max(), tgt_widths.max()))
    most = len(cut(bounds, src_widths, tgt_widths, budget)[0])
    low, high = widest, budget
    while low < high:
        middle = (low + high) // 2
        if len(cut(bounds, src_widths, tgt_widths, middle)[0]) <= most:
            high = middle
        else:
            low = middle + 1
    return cut(bounds, src_widths, tgt_widths, high)


def cut(bounds, src_widths, tgt_widths, budget) -> tuple[np.ndarray, np.ndarray]:
    """Cut the places into updates of at most `budget` padded positions a side, filled greedily.

    Args:
        bounds: (cells + 1,) first place of each cell, and the number of places.
        src_widths, tgt_widths: (cells,) longest sentences of each cell.

    Returns:
        cuts (updates + 1,) and widths (updates, 2): longest source and target that may occur in each update.
    """
    cuts, widths = [0], []
    src_width = tgt_width = 0
    spans = zip(bounds[:-1].tolist(), bounds[1:].tolist(), src_widths.tolist(), tgt_widths.tolist(), strict=True)
    for start, end, *cell in spans:
        wider = max(src_width, cell[0]), max(tgt_width, cell[1])
        room = cuts[-1] + budget // max(wider)  # where an update of these widths would be full
        if room <= start:  # full without any pair of this cell
            cuts.append(start)
            widths.append((src_width, tgt_width))
            wider, room = cell, start + budget // max(cell)
        while room < end:
            cuts.append(room)
            widths.append(wider)
            wider, room = cell, room + budget // max(cell)
        src_width, tgt_width = wider
    cuts.append(int(bounds[-1]))
    widths.append((src_width, tgt_width))
    return np.array(cuts), np.array(widths)


def random_keys(seed: int, epoch: int, begin: int, end: int, stream: int) -> np.ndarray:
    """The random uint64 of places begin … end - 1, each a function of (seed, epoch, stream, place)."""
    block = begin // 4  # Philox yields four numbers a count
    key = np.array([seed, epoch], dtype=np.uint64)
    return np.random.Philox(key=key, counter=[block, stream, 0, 0]).random_raw(end - 4 * block)[begin - 4 * block :]
