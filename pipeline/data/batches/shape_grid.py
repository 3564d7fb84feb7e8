"""A few shapes that batches are padded to, so that a CUDA graph captured for one batch serves many.

The shapes come from a sample of the run's own batches: the two shapes whose union adds least padding are merged until
few are left. They depend on the corpus and the settings alone, so a resumed run pads as before.
"""

from collections.abc import Iterable

import numpy as np

Shape = tuple[int, int, int]
"""Sequences, source positions, target positions."""

MOST_SHAPES = 48
FINENESS = 16
"""Steps between a length and its double, to which shapes are rounded up before they are merged."""


class ShapeGrid:
    """At most `most` shapes that cover `shapes`.

    Attributes:
        shapes: Sequences, source and target positions of each shape, (shapes, 3).
    """

    def __init__(self, shapes: Iterable[Shape], most: int = MOST_SHAPES):
        exact = np.unique(np.array([*shapes], dtype=np.int64).reshape(-1, 3), axis=0, return_counts=True)
        self.shapes = exact[0] if len(exact[0]) <= most else merged(*rounded_up(*exact), most)

    def fit(self, shape: Shape) -> Shape:
        """Return the covering shape with the fewest positions; if none covers `shape`, `shape` rounded up."""
        holds = self.shapes[(self.shapes >= shape).all(axis=1)]
        found = holds[np.argmin(positions(holds))] if len(holds) else round_up(np.array(shape))
        rows, source, target = found.tolist()
        return rows, source, target


def positions(shapes: np.ndarray) -> np.ndarray:
    """Count the positions of both sides: (…, 3) -> (…)."""
    return shapes[..., 0] * (shapes[..., 1] + shapes[..., 2])


def round_up(sizes: np.ndarray) -> np.ndarray:
    """Round sizes up to multiples of at most a FINENESS-th of the size."""
    step = 2 ** np.maximum(0, np.floor(np.log2(np.maximum(sizes, 1) / FINENESS))).astype(np.int64)
    return -(-sizes // step) * step


def rounded_up(shapes: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Round shapes up and add the counts of shapes that become equal.

    Args:
        shapes: Shapes, (N, 3).
        counts: Number of occurrences of each, (N,).

    Returns:
        Distinct rounded shapes, (M, 3), and their counts, (M,).
    """
    found, place = np.unique(round_up(shapes), axis=0, return_inverse=True)
    return found, np.bincount(place.ravel(), weights=counts)


def merged(shapes: np.ndarray, counts: np.ndarray, most: int) -> np.ndarray:
    """Merge shapes until few are left, at each step the two whose union adds least padding.

    Args:
        shapes: Distinct shapes, (N, 3).
        counts: Number of occurrences of each, (N,).
        most: Most shapes of the result.

    Returns:
        Shapes, (most, 3).
    """
    while len(shapes) > most:
        unions = np.maximum(shapes[:, None], shapes[None])
        cost = positions(shapes) * counts
        added = positions(unions) * (counts[:, None] + counts[None]) - cost[:, None] - cost[None]
        added[np.tril_indices(len(shapes))] = np.inf
        one, other = np.unravel_index(np.argmin(added), added.shape)
        shapes[one], counts[one] = unions[one, other], counts[one] + counts[other]
        shapes, counts = np.delete(shapes, other, 0), np.delete(counts, other)
    return shapes
