"""What decoding reads of a batch, and how the state of a model (models/seq2seq.py) is moved about.

B: sentences, K: hypotheses per sentence, S: source positions.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from pipeline.models.seq2seq import Seq2Seq, Tree


class SourceBatch(Protocol):
    """What decoding needs of a batch; the model may ask for more."""

    @property
    def src_mask(self) -> Tensor:
        """(B, S) bool, True where there is a source symbol, EOS among them."""

    @property
    def expected_length(self) -> Tensor:
        """(B,) int: output symbols, EOS not counted, that `max_extra_length` is added to."""


def output_limits(model: Seq2Seq, batch: SourceBatch, max_extra_length: int) -> Tensor:
    """(B,): the most symbols of each output, EOS not counted; its step needs a position too."""
    limits = batch.expected_length + max_extra_length
    return limits if model.max_positions is None else limits.clamp(max=model.max_positions - 1)


def rows_on(device: torch.device, rows: np.ndarray) -> Tensor:
    """int64 numbers that nobody waits for."""
    found = torch.from_numpy(rows)
    return found.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else found


def tree_map(function: Callable[[Tensor], Tensor], tree: Tree) -> Tree:
    """`tree` with `function` applied to each tensor in it."""
    match tree:
        case dict():
            return {key: tree_map(function, value) for key, value in tree.items()}
        case list() | tuple():
            return type(tree)(tree_map(function, value) for value in tree)
        case Tensor():
            return function(tree)
        case None:
            return None
    raise TypeError(f"model state must be tensors in dicts, lists and tuples, got {type(tree).__name__}")


def select_sentences(tree: Tree, rows: Tensor) -> Tree:
    """Keep the sentences `rows` (B',) of a tree of leading dimension B."""
    return tree_map(lambda tensor: tensor.index_select(0, rows), tree)


def select_hypotheses(tree: Tree, parents: Tensor) -> Tree:
    """Reorder a tree of leading dimensions (B, K) by `parents` (B', K'), numbers in the flattened B * K."""
    return tree_map(
        lambda tensor: tensor.flatten(0, 1).index_select(0, parents.flatten()).unflatten(0, parents.shape), tree
    )
