"""Additive attention inside a loop whose gradient is written by hand (recurrent/conditional_gru.py and its like).

Dimensions: B sentences, T steps, S positions, D annotation, A hidden units. Sequences are time first, as in
gru_record.py.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class AttentionRecord(NamedTuple):
    """What is computed on the way and needed on the way back, of all steps (T, B, …) or of one (B, …)."""

    activations: Tensor
    """sigmoid(2 (W s + U a + b)), (…, S, A)"""
    weights: Tensor
    """(…, S)"""

    @classmethod
    def empty(cls, steps: int, mask: Tensor, hidden: int, like: Tensor, kind: torch.dtype) -> "AttentionRecord":
        return cls(like.new_empty(steps, *mask.shape, hidden, dtype=kind), like.new_empty(steps, *mask.shape))

    def steps(self) -> list["AttentionRecord"]:
        return [AttentionRecord(*tensors) for tensors in zip(*self, strict=True)]

    def look(self, score: Tensor, hidden: Tensor) -> None:
        """Write the weights of a step, of whose `activations` what is under the sigmoid is there; score = 2 v, hidden:
        an `additive_mask`."""
        self.activations.sigmoid_()
        scores = torch.addmv(hidden, self.activations.flatten(0, 1), score).view(self.weights.shape)
        torch.softmax(scores.to(self.weights.dtype), 1, out=self.weights)

    def look_back(self, by_weights: Tensor, by_scores: Tensor, by_query: Tensor) -> Tensor:
        """Write the gradients by the scores (B, S) and by 2 W s (B, A) of a step, and give that by what is under the
        sigmoid (B, S, A). The last two lack the factor 2 v, which is put into the weights, so that it costs nothing."""
        by_scores.copy_(torch.ops.aten._softmax_backward_data(by_weights, self.weights, 1, self.weights.dtype))
        by_hidden = torch.ops.aten.sigmoid_backward(by_scores.unsqueeze(2), self.activations)
        torch.sum(by_hidden, 1, dtype=by_query.dtype, out=by_query)
        return by_hidden

    def score_gradient(self, by_scores: Tensor) -> Tensor:
        """By v, of the gradients by the scores of all steps."""
        gradient = 2 * torch.mv(self.activations.flatten(0, 2).t(), by_scores.flatten())
        return gradient.to(self.weights.dtype)


def additive_mask(mask: Tensor, kind: torch.dtype) -> Tensor:
    """(B, S) bool -> 0 where True and -inf elsewhere, flattened, (B * S,)"""
    return torch.zeros(mask.shape, dtype=kind, device=mask.device).masked_fill_(~mask, -torch.inf).flatten()


def dots(vectors: Tensor, rows: Tensor) -> Tensor:
    """vectors (B, D), rows (B, S, D) -> (B, S); a row times a matrix, ten times as fast as a matrix times a column."""
    return torch.bmm(vectors.unsqueeze(1), rows.transpose(1, 2)).squeeze(1)


def weighted_sum(weights: Tensor, rows: Tensor, out: Tensor | None = None) -> Tensor:
    """weights (B, S), rows (B, S, D) -> (B, D), or written to `out`"""
    if out is None:
        return torch.bmm(weights.unsqueeze(1), rows).squeeze(1)
    if out.dtype != rows.dtype:
        return out.copy_(weighted_sum(weights.to(rows.dtype), rows))
    return torch.bmm(weights.unsqueeze(1), rows, out=out.unsqueeze(1)).squeeze(1)
