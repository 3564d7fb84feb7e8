"""One step of additive attention inside a loop with a hand-derived backward pass.

The scores are computed as 2 v^T sigmoid(2 (W s + U a + b)), see recurrent/cells.py.

Dimensions: B sentences, T steps, S positions, A hidden units. Sequences are time first, as in gru.py.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class AttentionCache(NamedTuple):
    """Forward values for the backward pass, of all steps (T, B, …) or one step (B, …)."""

    activations: Tensor
    """sigmoid(2 (W s + U a + b)), shape (…, S, A)"""
    weights: Tensor
    """Attention weights, shape (…, S)"""

    @classmethod
    def empty(cls, steps: int, mask: Tensor, hidden: int, like: Tensor, dtype: torch.dtype) -> "AttentionCache":
        """Allocate the cache of a loop.

        Args:
            steps: T.
            mask: Shape (B, S).
            hidden: A.
            like: Gives the device, and the dtype of the weights.
            dtype: Dtype of the activations.
        """
        return cls(like.new_empty(steps, *mask.shape, hidden, dtype=dtype), like.new_empty(steps, *mask.shape))

    def steps(self) -> list["AttentionCache"]:
        """Split the cache into views of single steps."""
        return [AttentionCache(*tensors) for tensors in zip(*self, strict=True)]

    def attend(self, score: Tensor, padding: Tensor) -> None:
        """Compute `weights` of one step; `activations` holds the input of the sigmoid.

        Args:
            score: 2 v, shape (A,).
            padding: `additive_mask` of the positions.
        """
        self.activations.sigmoid_()
        scores = torch.addmv(padding, self.activations.flatten(0, 1), score).view(self.weights.shape)
        torch.softmax(scores.to(self.weights.dtype), 1, out=self.weights)

    def attend_backward(self, grad_weights: Tensor, grad_scores: Tensor, grad_query: Tensor) -> Tensor:
        """Differentiate one step.

        `grad_query` and the result lack the factor 2 v. The caller multiplies weights by it, which costs nothing.

        Args:
            grad_weights: Gradient with respect to the weights, shape (B, S).
            grad_scores: Output, the gradient with respect to the scores, shape (B, S).
            grad_query: Output, the gradient with respect to 2 W s, shape (B, A).

        Returns:
            The gradient with respect to the input of the sigmoid, shape (B, S, A).
        """
        grad_scores.copy_(torch.ops.aten._softmax_backward_data(grad_weights, self.weights, 1, self.weights.dtype))
        grad_hidden = torch.ops.aten.sigmoid_backward(grad_scores.unsqueeze(2), self.activations)
        torch.sum(grad_hidden, 1, dtype=grad_query.dtype, out=grad_query)
        return grad_hidden

    def score_gradient(self, grad_scores: Tensor) -> Tensor:
        """Return the gradient with respect to v (A,).

        Args:
            grad_scores: Gradient with respect to the scores of all steps, shape (T, B, S).
        """
        gradient = 2 * torch.mv(self.activations.flatten(0, 2).t(), grad_scores.flatten())
        return gradient.to(self.weights.dtype)


def additive_mask(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn a mask (B, S) into a bias of the scores (B * S,): 0 where it is True, else -inf."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, -torch.inf).flatten()
