"""The sizes on which the number of operations of a forward pass depends."""

from typing import NamedTuple


class BatchShape(NamedTuple):
    """Positions of all sequences of a side together, padding among them, and of one; source positions of speech are
    frames."""

    vocab: int
    """Of the target side."""
    src_positions: float
    tgt_positions: float
    src_length: float
    tgt_length: float
