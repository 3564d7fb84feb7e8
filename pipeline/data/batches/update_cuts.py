"""Pairs of like length side by side, and where their order is cut into updates.

The widths of a cell or of an update are its longest source and target.
"""

import numpy as np

# Relative widths of the cells: narrow enough that little is padded, wide enough that an update meets new neighbours.
TGT_CELL_WIDTH, SRC_CELL_WIDTH = 1 / 12, 1 / 6
LARGEST_CELL = 1 << 14


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
    bounds: np.ndarray, widths: np.ndarray, tokens: int | None, sentences: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Where the places are cut into updates of at most so many `sentences`, or else `tokens` per side; see `cut`."""
    if sentences is None:
        if tokens is None:
            raise ValueError("an update is counted in tokens or in sentences")
        return even_cuts(bounds, widths, tokens)
    places = int(bounds[-1])
    cuts = np.linspace(0, places, -(-places // sentences) + 1).astype(np.int64)
    first = np.searchsorted(bounds, cuts[:-1], side="right") - 1
    last = np.searchsorted(bounds, cuts[1:], side="left")
    return cuts, np.array([widths[begin:end].max(axis=0) for begin, end in zip(first, last, strict=True)])


def even_cuts(bounds: np.ndarray, widths: np.ndarray, budget: int) -> tuple[np.ndarray, np.ndarray]:
    """`cut` with the smallest budget that gives no more updates than `budget` does: no small one is left over."""
    most = len(cut(bounds, widths, budget)[0])
    low, high = int(widths.max()), budget
    while low < high:
        middle = (low + high) // 2
        if len(cut(bounds, widths, middle)[0]) <= most:
            high = middle
        else:
            low = middle + 1
    return cut(bounds, widths, high)


def cut(bounds: np.ndarray, widths: np.ndarray, budget: int) -> tuple[np.ndarray, np.ndarray]:
    """Cut the places into updates of at most `budget` padded positions per side, filled greedily.

    Args:
        bounds: (cells + 1,) first place of each cell, and the number of places.
        widths: (cells, 2) longest source and target of each cell.

    Returns:
        cuts (updates + 1,) and widths (updates, 2): longest source and target that may occur in each update.
    """
    cuts, found = [0], []
    src_width = tgt_width = 0
    for start, end, src, tgt in zip(bounds[:-1].tolist(), bounds[1:].tolist(), *widths.T.tolist(), strict=True):
        wider = max(src_width, src), max(tgt_width, tgt)
        room = cuts[-1] + budget // max(wider)  # where an update of these widths would be full
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
