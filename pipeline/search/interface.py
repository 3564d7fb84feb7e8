"""Input of a search: a batch of sources, and the scores and state of a model, with or without an external LM.

Dimensions: B sentences, K hypotheses per sentence, S source positions, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from pipeline.models.language_model.model import LanguageModel, Ngram
from pipeline.models.seq2seq import Seq2Seq, Tree


class SourceBatch(Protocol):
    """The part of a batch that decoding reads; a model may read more."""

    @property
    def src_mask(self) -> Tensor:
        """Bool, shape (B, S), True at source symbols, EOS included."""

    @property
    def expected_length(self) -> Tensor:
        """Int, shape (B,): output symbols without EOS that `max_extra_length` is added to."""


def output_limits(model: Seq2Seq, batch: SourceBatch, max_extra_length: int) -> Tensor:
    """Return the largest number of symbols of each output, without EOS.

    Args:
        model: Bounds the positions.
        batch: Gives the expected lengths.
        max_extra_length: Symbols that an output may have beyond its expected length.

    Returns:
        Int, shape (B,).
    """
    limits = batch.expected_length + max_extra_length
    # EOS needs a position too.
    return limits if model.max_positions is None else limits.clamp(max=model.max_positions - 1)


def to_device_async(device: torch.device, indices: np.ndarray) -> Tensor:
    """Return a copy of indices on a device without waiting for the copy.

    Args:
        device: Where the indices are used.
        indices: Int64, of any shape.
    """
    found = torch.from_numpy(indices)
    return found.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else found


class AsyncCopy:
    """A copy of a tensor to the host that is made while the host continues.

    Args:
        values: On any device; later work may overwrite them.
    """

    def __init__(self, values: Tensor):
        self.copied = None
        if values.is_cuda:
            self.host = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
            self.host.copy_(values, non_blocking=True)
            self.copied = torch.Event(values.device)
            self.copied.record()
        else:
            self.host = values.clone()

    def wait(self) -> Tensor:
        """Wait for the copy and return it."""
        if self.copied:
            self.copied.synchronize()
        return self.host


def tree_map(function: Callable[[Tensor], Tensor], tree: Tree) -> Tree:
    """Return a tree of the same structure with a function applied to each tensor.

    Args:
        function: Maps a tensor of any shape to a tensor.
        tree: Tensors in dicts, lists and tuples; None stays None.

    Raises:
        TypeError: The tree holds something other than tensors, dicts, lists, tuples and None.
    """
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
    """Return selected sentences of a state, tensors of shape (B', …).

    Args:
        tree: Tensors of shape (B, …).
        rows: Indices of the sentences, shape (B',).
    """
    return tree_map(lambda tensor: tensor.index_select(0, rows), tree)


def select_hypotheses(tree: Tree, parents: Tensor) -> Tree:
    """Return selected or reordered hypotheses of a state, tensors of shape (B', K', …).

    Args:
        tree: Tensors of shape (B, K, …).
        parents: Indices into the flattened B * K, shape (B', K').
    """
    return tree_map(
        lambda tensor: tensor.flatten(0, 1).index_select(0, parents.flatten()).unflatten(0, parents.shape), tree
    )


class ModelScores:
    """Scores of a model: log p(y_t | y_<t, x)."""

    def __init__(self, model: Seq2Seq):
        self.model = model

    def start(self, batch: SourceBatch) -> tuple[Tree, Tree]:
        """Return the source, and the cache of hypotheses that have read nothing; see `Seq2Seq.start`."""
        return self.model.start(batch)

    def step(self, prev_tokens: Tensor, source: Tree, cache: Tree) -> tuple[Tensor, Tree]:
        """Return scores (B, K, V) of the next symbol, and the cache after this one.

        Args:
            prev_tokens: Newest symbol of each hypothesis, shape (B, K).
            source: First result of `start`.
            cache: Second result of `start`, or the cache of the previous step.
        """
        logits, cache = self.model.step(prev_tokens, source, cache)
        return logits.log_softmax(-1), cache

    def fixed_cache(self, cache: Tree, places: int) -> Tree:
        """Return a cache that keeps its shapes; see `Seq2Seq.fixed_cache`.

        Args:
            cache: Second result of `start`, or a fixed cache.
            places: Total number of steps.
        """
        return self.model.fixed_cache(cache, places)


@dataclass(frozen=True)
class ExternalLM:
    """An external language model and its weight."""

    model: LanguageModel | Ngram
    weight: float
    """λ >= 0: scores then never rise with length, which the early stop of the search requires."""


class ShallowFusion(ModelScores):
    """Scores of shallow fusion: log p(y_t | y_<t, x) + λ log p_LM(y_t | y_<t) (Cold Fusion, eq. 2)."""

    def __init__(self, model: Seq2Seq, external_lm: ExternalLM):
        super().__init__(model)
        self.external_lm = external_lm

    def start(self, batch: SourceBatch) -> tuple[Tree, Tree]:
        """Return the source, and the caches of model and language model; see `Seq2Seq.start`."""
        source, cache = self.model.start(batch)
        return source, {"model": cache, "lm": self.external_lm.model.initial_cache(len(batch.src_mask))}

    def step(self, prev_tokens: Tensor, source: Tree, cache: Tree) -> tuple[Tensor, Tree]:
        """Return scores (B, K, V) of the next symbol, and both caches after this one.

        Args:
            prev_tokens: Newest symbol of each hypothesis, shape (B, K).
            source: First result of `start`.
            cache: Caches of model and language model.
        """
        scores, model_cache = super().step(prev_tokens, source, cache["model"])
        states, lm_cache = self.external_lm.model.advance(prev_tokens, cache["lm"])
        scores = scores + self.external_lm.weight * self.external_lm.model.logits(states).log_softmax(-1)
        return scores, {"model": model_cache, "lm": lm_cache}

    def fixed_cache(self, cache: Tree, places: int) -> Tree:
        """Convert the model's cache into one that keeps its shapes; that of the language model never grows.

        Args:
            cache: Caches of model and language model.
            places: Total number of steps.

        Returns:
            Both caches.
        """
        return {"model": super().fixed_cache(cache["model"], places), "lm": cache["lm"]}


def scorer_of(model: Seq2Seq, external_lm: ExternalLM | None) -> ModelScores:
    """Return the scores of a model, with those of an external language model added if there is one."""
    return ShallowFusion(model, external_lm) if external_lm else ModelScores(model)
