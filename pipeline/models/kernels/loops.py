"""Steps of the hand-written loops: matrix multiplications in the dtype of autocast, and additive attention.

The scores of the attention are computed as 2 v^T sigmoid(2 (W s + U a + b)), see recurrent/cells.py.

Dimensions: B sentences, T steps, S positions, D features, A hidden units of attention. Sequences are time first, as in
gru.py.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from pipeline.models.kernels.operators import softmax, softmax_backward

Result = TypeVar("Result")
# cuDNN copies the weights of `run_gru` into one chunk of memory, which is cheap beside its loop over steps.
warnings.filterwarnings("ignore", "RNN module weights are not part of single contiguous chunk of memory")


def matmul_dtype(like: Tensor) -> torch.dtype:
    """Return the dtype of matmuls on the device of `like` (…): autocast's if it is active, else the tensor's own."""
    device = like.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else like.dtype


def loop_dtype(like: Tensor) -> torch.dtype:
    """Return the dtype of matrix multiplications inside a loop.

    On a GPU a loop is bound by kernel launches, and each cast is one. There it keeps the dtype of `like`, whose matrix
    multiplications run in TF32.
    """
    return like.dtype if like.is_cuda else matmul_dtype(like)


def run_recurrent(layer: Callable[..., Result], *inputs: Tensor) -> Result:
    """Return the result of torch's recurrent `layer` or cell for its `inputs` (…), in float32 on a GPU.

    There autocast runs cuDNN's recurrent layers in float16, even if its dtype is bfloat16. Gradients of a mean over
    thousands of symbols are below the normal range of float16. Matrix multiplications run in TF32, as in other loops.
    """
    if not inputs[0].is_cuda:
        return layer(*inputs)
    with torch.autocast("cuda", enabled=False):
        return layer(*(x.float() for x in inputs))


def run_gru(x: Tensor, weights: Sequence[Tensor], training: bool) -> Tensor:
    """Return the states (B, T, H) of one GRU layer by torch's kernel; see `run_recurrent`.

    Args:
        x: Shape (B, T, D).
        weights: Those of `torch.nn.GRU` for a layer: W (3H, D), U (3H, H) and the two biases (3H,).
        training: Keep what a backward pass needs.
    """

    def layer(x: Tensor) -> Tensor:
        start = x.new_zeros(1, len(x), weights[1].shape[1])
        return torch.gru(x, start, [*weights], True, 1, 0.0, training, False, True)[0]

    return run_recurrent(layer, x)


def matmul(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute x @ weight + bias, multiplied in the dtype of `weight`.

    Args:
        x: Shape (B, D).
        weight: Shape (D, columns).
        bias: Shape (columns,) or (B, columns); None to add nothing.

    Returns:
        Shape (B, columns), in the dtype of `x`.
    """
    if x.dtype != weight.dtype:
        found = (x.to(weight.dtype) @ weight).to(x.dtype)
        return found if bias is None else found.add_(bias)
    return x @ weight if bias is None else torch.addmm(bias, x, weight)


def add_matmul_(total: Tensor, x: Tensor, weight: Tensor) -> None:
    """Add `x` (B, D) @ `weight` (D, columns) to `total` (B, columns), multiplied in the dtype of `weight`."""
    if x.dtype == weight.dtype == total.dtype:
        total.addmm_(x, weight)
    else:
        total += x.to(weight.dtype) @ weight


def weight_gradient(grad_output: Tensor, inputs: Tensor, dtype: torch.dtype) -> Tensor:
    """Compute the gradient of a weight from all steps at once.

    Args:
        grad_output: Shape (T, B, rows).
        inputs: Shape (T, B, columns).
        dtype: Dtype of the matrix multiplication.

    Returns:
        Shape (rows, columns), in the dtype of `inputs`.
    """
    return (grad_output.flatten(0, 1).t().to(dtype) @ inputs.flatten(0, 1).to(dtype)).to(inputs.dtype)


def dot_rows(vectors: Tensor, rows: Tensor) -> Tensor:
    """Return the dot products (B, S) of `vectors` (B, D) with `rows` (B, S, D), for each sentence.

    A row vector times a matrix is ten times as fast as a matrix times a column vector.
    """
    return torch.bmm(vectors.unsqueeze(1), rows.transpose(1, 2)).squeeze(1)


def sum_rows(weights: Tensor, rows: Tensor, out: Tensor | None = None) -> Tensor:
    """Sum the rows of a matrix with weights, for each sentence.

    Args:
        weights: Shape (B, S).
        rows: Shape (B, S, D).
        out: Output, shape (B, D); None to allocate it.

    Returns:
        Shape (B, D); `out` if it is given.
    """
    if out is None:
        return torch.bmm(weights.unsqueeze(1), rows).squeeze(1)
    if out.dtype != rows.dtype:
        return out.copy_(sum_rows(weights.to(rows.dtype), rows))
    return torch.bmm(weights.unsqueeze(1), rows, out=out.unsqueeze(1)).squeeze(1)


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
            like: Tensor of any shape; gives the device, and the dtype of the weights.
            dtype: Dtype of the activations.

        Returns:
            Uninitialised activations (T, B, S, A) and weights (T, B, S).
        """
        return cls(like.new_empty(steps, *mask.shape, hidden, dtype=dtype), like.new_empty(steps, *mask.shape))

    def steps(self) -> list["AttentionCache"]:
        """Split the cache into views of single steps."""
        return [AttentionCache(*tensors) for tensors in zip(*self, strict=True)]

    def attend(self, score: Tensor, padding: Tensor) -> None:
        """Compute `weights` of one step in place; `activations` holds the input of the sigmoid.

        Args:
            score: 2 v, shape (A,).
            padding: Result of `additive_mask`, shape (B * S,).
        """
        self.activations.sigmoid_()
        scores = torch.addmv(padding, self.activations.flatten(0, 1), score).view(self.weights.shape)
        softmax(scores.to(self.weights.dtype), out=self.weights)

    def attend_backward(self, grad_weights: Tensor, grad_scores: Tensor, grad_query: Tensor) -> Tensor:
        """Differentiate one step.

        `grad_query` and the result lack the factor 2 v. The caller multiplies weights by it, which costs nothing.

        Args:
            grad_weights: Gradient with respect to the weights, shape (B, S).
            grad_scores: Output, the gradient with respect to the scores, shape (B, S).
            grad_query: Output, the gradient with respect to 2 W s, shape (B, A).

        Returns:
            Gradient with respect to the input of the sigmoid, shape (B, S, A).
        """
        grad_scores.copy_(softmax_backward(grad_weights, self.weights))
        grad_hidden = torch.ops.aten.sigmoid_backward(grad_scores.unsqueeze(2), self.activations)
        torch.sum(grad_hidden, 1, dtype=grad_query.dtype, out=grad_query)
        return grad_hidden

    def score_gradient(self, grad_scores: Tensor) -> Tensor:
        """Compute the gradient (A,) with respect to v from `grad_scores` (T, B, S) of all steps at once."""
        gradient = 2 * torch.mv(self.activations.flatten(0, 2).t(), grad_scores.flatten())
        return gradient.to(self.weights.dtype)


def additive_mask(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Return a bias (B * S,) of the scores: 0 where `mask` (B, S) is True, else -inf, in a `dtype`."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, -torch.inf).flatten()
