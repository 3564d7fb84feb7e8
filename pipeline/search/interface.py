"""What a model has to offer to be decoded, and how its state is moved about.

B: sentences, K: hypotheses per sentence, S: source positions, V: vocabulary.
"""

from collections.abc import Callable
from typing import Any, Protocol

from torch import Tensor

Tree = Any
"""Tensors in nested dicts, lists and tuples."""


class SourceBatch(Protocol):
    """What decoding needs of a batch; the model may ask for more."""

    @property
    def src_mask(self) -> Tensor:
        """(B, S) bool, True where there is a source symbol, EOS among them."""

    @property
    def expected_length(self) -> Tensor:
        """(B,) int: output symbols, EOS not counted, that `max_extra_length` is added to."""


class IncrementalModel(Protocol):
    """A model that gives one target position at a time."""

    max_positions: int | None
    """Target positions that it can give; None = any number."""

    def start(self, batch: SourceBatch) -> tuple[Tree, Tree]:
        """(source, cache): trees of tensors of leading dimensions (B,) and (B, K = 1)."""

    def step(self, prev_tokens: Tensor, source: Tree, cache: Tree) -> tuple[Tensor, Tree]:
        """(logits (B, K, V) float32, cache) after reading `prev_tokens` (B, K)."""


class LanguageModel(Protocol):
    """A model of the output alone, read symbol by symbol beside the other."""

    def begin(self, sentences: int) -> Tree:
        """The cache (B, K = 1, …) of hypotheses that have read nothing."""

    def advance(self, prev_tokens: Tensor, cache: Tree) -> tuple[Tensor, Tree]:
        """States (B, K, H), and the cache, after reading `prev_tokens` (B, K)."""

    def logits(self, states: Tensor) -> Tensor:
        """States (…, H) -> float32 (…, V)"""


def output_limits(model: IncrementalModel, batch: SourceBatch, max_extra_length: int) -> Tensor:
    """(B,): the most symbols of each output, EOS not counted; its step needs a position too."""
    limits = batch.expected_length + max_extra_length
    return limits if model.max_positions is None else limits.clamp(max=model.max_positions - 1)


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
