"""Cut an epoch into training steps, without torch, so that forecasts cut steps as trainings do.

- Pairs are grouped into cells of similar target and source length, and the cells are cut into steps.
- Other sequences are shuffled, sorted by length within stretches of steps, and cut into steps of equal size.
"""

from functools import lru_cache

import numpy as np


def random_keys(seed: int, epoch: int, begin: int, end: int, stream: int) -> np.ndarray:
    """Draw a random key for each place begin … end - 1.

    Each key is a function of (seed, epoch, stream, place): Philox is a counter-based generator.

    Args:
        seed: Seed of the run.
        epoch: Epoch.
        begin: First place.
        end: Last place plus one.
        stream: Number of the purpose, so that purposes have independent keys.

    Returns:
        Keys, (end - begin,) uint64.
    """
    block = begin // 4  # Philox yields four numbers per count
    key = np.array([seed, epoch], dtype=np.uint64)
    return np.random.Philox(key=key, counter=[block, stream, 0, 0]).random_raw(end - 4 * block)[begin - 4 * block :]


# Relative widths of the cells: narrow enough for little padding, wide enough that a pair meets new neighbours.
TGT_CELL_WIDTH, SRC_CELL_WIDTH = 1 / 12, 1 / 6
LARGEST_CELL = 1 << 14
"""Maximum number of pairs of a cell; permuting a cell is then cheap."""


def group_into_cells(src_lengths: np.ndarray, tgt_lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Order the pairs so that those of similar lengths, a cell, lie together.

    A large cell is split with a stride: each part takes every n-th of its pairs and so spans the corpus.

    Args:
        src_lengths: Source lengths, EOS included, (pairs,).
        tgt_lengths: Target lengths, EOS included, (pairs,).

    Returns:
        Pairs, (pairs,) uint32; the first place of each cell, and the number of places, (cells + 1,); and the longest
        source and target of each cell before it was split, (cells, 2).
    """
    cell_of_pair, num_cells = assign_cells(src_lengths, tgt_lengths)
    order = np.argsort(cell_of_pair, kind="stable").astype(np.uint32)
    sizes, widths = np.zeros(num_cells, np.int64), np.zeros((2, num_cells), np.int32)
    np.add.at(sizes, cell_of_pair, 1)
    for widest, lengths in zip(widths, (src_lengths, tgt_lengths), strict=True):
        np.maximum.at(widest, cell_of_pair, lengths)
    begins, num_parts, part_sizes = np.cumsum(sizes) - sizes, -(-sizes // LARGEST_CELL), [0]
    for begin, size, stride in zip(begins.tolist(), sizes.tolist(), num_parts.tolist(), strict=True):
        parts = [order[begin : begin + size][first::stride] for first in range(stride)]
        if stride > 1:
            order[begin : begin + size] = np.concatenate(parts)
        part_sizes += map(len, parts)
    return order, np.cumsum(part_sizes), np.repeat(widths.T, num_parts, axis=0)


def assign_cells(src_lengths: np.ndarray, tgt_lengths: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the cell (pairs,) of each pair, and the number of cells; see `group_into_cells`.

    Cells are target buckets times source buckets in a serpentine order.
    """
    src_buckets = bucket_table(int(src_lengths.max()), SRC_CELL_WIDTH)
    tgt_buckets = bucket_table(int(tgt_lengths.max()), TGT_CELL_WIDTH)
    rows, columns = int(tgt_buckets[-1]) + 1, int(src_buckets[-1]) + 1
    cells = np.arange(rows * columns, dtype=np.uint16).reshape(rows, columns)
    cells[1::2] = cells[1::2, ::-1].copy()
    return cells[tgt_buckets[tgt_lengths], src_buckets[src_lengths]], cells.size


def bucket_table(longest: int, width: float) -> np.ndarray:
    """Return the bucket of each length 0 … `longest`; one that begins at n spans max(1, n * `width`) lengths."""
    table = np.zeros(longest + 1, dtype=np.uint16)
    begin, bucket = 1, 0
    while begin <= longest:
        end = begin + max(1, int(begin * width))
        table[begin:end] = bucket
        begin, bucket = end, bucket + 1
    return table


def cut_into_steps(
    bounds: np.ndarray, widths: np.ndarray, tokens: int | None, sentences: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Cut the places into steps of at most `sentences` pairs, or else `tokens` positions per side.

    Args:
        bounds: First place of each cell, and the number of places, (cells + 1,).
        widths: Longest source and target of each cell, (cells, 2).
        tokens: Maximum number of padded positions of a step per side; ignored if `sentences` is set.
        sentences: Pairs of a step; None uses `tokens`.

    Returns:
        Bounds of the steps, (steps + 1,), and the longest source and target that may occur in each, (steps, 2).

    Raises:
        ValueError: Neither `tokens` nor `sentences` is set.
    """
    if sentences is None:
        if tokens is None:
            raise ValueError("set the size of a step in tokens or in sentences")
        return cut_evenly(bounds, widths, tokens)
    places = int(bounds[-1])
    cuts = np.linspace(0, places, -(-places // sentences) + 1).astype(np.int64)
    first = np.searchsorted(bounds, cuts[:-1], side="right") - 1
    last = np.searchsorted(bounds, cuts[1:], side="left")
    return cuts, np.array([widths[begin:end].max(axis=0) for begin, end in zip(first, last, strict=True)])


def cut_evenly(bounds: np.ndarray, widths: np.ndarray, budget: int) -> tuple[np.ndarray, np.ndarray]:
    """Cut with the smallest budget that needs no more steps than `budget` does, as `cut_greedily`."""
    most = len(cut_greedily(bounds, widths, budget)[0])
    low, high = int(widths.max()), budget
    while low < high:
        middle = (low + high) // 2
        if len(cut_greedily(bounds, widths, middle)[0]) <= most:
            high = middle
        else:
            low = middle + 1
    return cut_greedily(bounds, widths, high)


def cut_greedily(bounds: np.ndarray, widths: np.ndarray, budget: int) -> tuple[np.ndarray, np.ndarray]:
    """Cut the places into steps of at most `budget` padded positions per side; see `cut_into_steps`."""
    cuts, found = [0], []
    src_width = tgt_width = 0
    for start, end, src, tgt in zip(bounds[:-1].tolist(), bounds[1:].tolist(), *widths.T.tolist(), strict=True):
        wider = max(src_width, src), max(tgt_width, tgt)
        room = cuts[-1] + budget // max(wider)  # where a step of these widths is full
        if room <= start:  # full without any pair of this cell
            cuts.append(start)
            found.append((src_width, tgt_width))
            wider, room = (src, tgt), start + budget // max(src, tgt)
        while room < end:
            cuts.append(room)
            found.append(wider)
            wider, room = (src, tgt), room + budget // max(src, tgt)
        src_width, tgt_width = wider
    cuts.append(int(bounds[-1]))
    found.append((src_width, tgt_width))
    return np.array(cuts), np.array(found)


def heaviest_group(lengths: np.ndarray, count: int, budget: int) -> tuple[np.ndarray, int]:
    """Choose the sequences of a step so that its first micro-batch has most attention weights.

    A step is split into as few equal micro-batches as its longest sequence allows. If that is a little shorter, the
    micro-batches may have more rows, so the longest sequences need not be the heaviest.

    Args:
        lengths: Lengths of the sequences to choose from, (N,).
        count: Sequences of the step, at most N.
        budget: Maximum number of padded positions of a micro-batch; no length exceeds it.

    Returns:
        Places in `lengths`, longest first, (count,), and the rows of the first micro-batch times its squared width.
    """
    order = np.argsort(lengths, kind="stable")
    rising = lengths[order].astype(np.int64)
    ends = np.unique(np.searchsorted(rising, rising[count - 1 :], side="right"))
    longest = rising[ends - 1]
    micro_batches = -(-count // (budget // longest))
    weights = -(-count // micro_batches) * longest**2
    best = int(np.argmax(weights))
    return order[ends[best] - count : ends[best]][::-1], int(weights[best])


POOL = 32
"""Number of steps among whose sequences an epoch sorts by length."""


@lru_cache(maxsize=2)  # most steps follow one of the same epoch
def step_order(seed: int, epoch: int, steps: int) -> np.ndarray:
    """Return the order of the `steps` in an `epoch` (from 0), by a `seed`; do not change it."""
    return np.argsort(random_keys(seed, epoch, 0, steps, stream=1))


class FixedSizeSteps:
    """The steps of an epoch over some sequences; `len()` is their number.

    Args:
        numbers: Indices of the sequences, (N,), N ≥ 1.
        lengths: Their lengths, (N,).
        per_step: Sequences per step; if it does not divide N, some steps have one fewer.
        seed: Seed of the shuffles.
        sorted_first: Sort the first epoch from short to long.
    """

    def __init__(self, numbers: np.ndarray, lengths: np.ndarray, per_step: int, seed: int, sorted_first: bool):
        self.numbers, self.lengths = numbers.astype(np.int64), lengths.astype(np.int64)
        self.seed, self.sorted_first = seed, sorted_first
        steps = -(-len(numbers) // per_step)
        self.cuts = np.arange(steps + 1) * len(numbers) // steps
        self._last: tuple[int, np.ndarray] | None = None
        """An epoch and its order of sequences; no cache, whose bound method would keep this object alive."""
        self.padding = self._padding(self.shuffled(1))

    def __len__(self) -> int:
        return len(self.cuts) - 1

    def sequences_of(self, step: int) -> np.ndarray:
        """Return the indices of the sequences of global step `step` (from 0), shortest first."""
        epoch, place = divmod(step, len(self))
        is_sorted = epoch == 0 and self.sorted_first
        number = place if is_sorted else step_order(self.seed, epoch, len(self))[place]
        if (last := self._last) is None or last[0] != epoch:  # most steps follow one of the same epoch
            last = epoch, np.argsort(self.lengths, kind="stable") if is_sorted else self.shuffled(epoch)
            self._last = last
        return self.numbers[last[1][slice(*self.cuts[number : number + 2])]]

    def shuffled(self, epoch: int) -> np.ndarray:
        """Shuffle the sequences, then sort each stretch of POOL steps by length."""
        shuffled = np.argsort(random_keys(self.seed, epoch, 0, len(self.numbers), stream=0))
        stretch = np.searchsorted(self.cuts[POOL::POOL], np.arange(len(shuffled)), side="right")
        return shuffled[np.lexsort((self.lengths[shuffled], stretch))]

    def _padding(self, order: np.ndarray) -> float:
        """Return the share of padding in the positions of an epoch."""
        longest = np.maximum.reduceat(self.lengths[order], self.cuts[:-1])
        return 1 - float(self.lengths.sum() / (longest * np.diff(self.cuts)).sum())
