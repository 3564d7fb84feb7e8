"""Operators that torch runs slowly: sums of branches, reversal, convolution, softmax of short rows and attention.

Dimensions: M branches, B sequences, S positions or frames, H features of a position.
Of a convolution: C input and O output channels, F features, S' and F' after the strides, W x Z kernel.
Of an attention: H heads, T queries, S keys, d_k and d_v widths of a head.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.models.kernels.dropout import dropout


def weighted_sum(alpha: Tensor, x: Tensor) -> Tensor:
    """Compute sum_i alpha_i x_i, shape (…), of `alpha` (M,) and `x` (M, …), in the dtype of `x`."""
    return _WeightedSumFunction.apply(alpha, x)


class _WeightedSumFunction(torch.autograd.Function):
    """Autograd function of `weighted_sum`, whose gradient is an elementwise multiplication.

    cuBLAS runs the outer product of alpha and the gradient as hundreds of small kernels: a sixth of a training step.
    """

    @staticmethod
    def forward(ctx, alpha: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(alpha, x)
        return (alpha.to(x.dtype) @ x.flatten(1)).unflatten(0, x.shape[1:])

    @staticmethod
    def backward(ctx, grad: Tensor):
        alpha, x = ctx.saved_tensors
        weights = alpha.to(grad.dtype).view(-1, *[1] * grad.dim())
        return (x.flatten(1) @ grad.flatten().to(x.dtype)).to(alpha.dtype), (weights * grad).to(x.dtype)


def gather_positions(x: Tensor, indices: Tensor) -> Tensor:
    """Put position indices[b, j] of sequence b at j, as `pipeline.models.layers.positions.gather_positions`."""
    return _ReversalFunction.apply(x, indices)


class _ReversalFunction(torch.autograd.Function):
    """Autograd function of a reversal, whose gradient is gathered at the same indices: they are their own inverse.

    The backward pass of `gather` can't know that. It adds gradients up at sorted positions, which takes a fifth of a
    long recogniser's training step on a GPU.
    """

    @staticmethod
    def forward(ctx, x: Tensor, indices: Tensor) -> Tensor:
        ctx.save_for_backward(indices)
        return x.gather(1, indices.unsqueeze(2).expand_as(x))

    @staticmethod
    def backward(ctx, grad: Tensor):
        (indices,) = ctx.saved_tensors
        return grad.gather(1, indices.unsqueeze(2).expand_as(grad)), None


def conv2d_over_frames(convolution: nn.Conv2d, x: Tensor) -> Tensor:
    """Apply a two-dimensional convolution as a one-dimensional convolution over frames, on a CPU.

    The kernel must be odd, with half of it as padding. The kernels of Deep Speech 2 are as high as there are features,
    so this form has hardly more multiplications. In torch's own form, the gradient of so large a kernel takes three to
    ten times as long as the rest.

    Args:
        convolution: Gives weight (O, C, W, Z), bias and stride.
        x: Shape (B, C, S, F).

    Returns:
        Shape (B, O, S', F').
    """
    bands, (width, height), (hop, jump) = x.shape[3], convolution.kernel_size, convolution.stride
    # Kernel rows that each output feature multiplies the input features by, shape (O, C, W, F', F).
    first = bands + height // 2 - torch.arange(0, bands, jump)
    rows = F.pad(convolution.weight, (bands, bands)).unfold(3, bands, 1)[:, :, :, first]
    weight = rows.permute(0, 3, 1, 4, 2).flatten(2, 3).flatten(0, 1)
    bias = None if convolution.bias is None else convolution.bias.repeat_interleave(len(first))
    out = F.conv1d(x.transpose(2, 3).flatten(1, 2), weight, bias, hop, width // 2)
    return out.unflatten(1, (-1, len(first))).transpose(2, 3)


SOFTMAX_LANES = 16
"""Float32 numbers in the widest vector register of a CPU."""


def softmax(scores: Tensor, out: Tensor | None = None) -> Tensor:
    """Compute the softmax over the last dimension.

    On a CPU, torch sums a row that is shorter than a vector register number by number, which takes ten times as long as
    a whole register. Such rows are padded.

    Args:
        scores: Shape (…, S).
        out: Output, shape (…, S); None to allocate it.

    Returns:
        Shape (…, S): `out`, or a view of the padded rows if S is small.
    """
    length = scores.shape[-1]
    if scores.device.type != "cpu" or length >= SOFTMAX_LANES:
        return torch.softmax(scores, -1, out=out)
    padded = F.pad(scores, (0, SOFTMAX_LANES - length), value=-torch.inf)
    weights = torch.softmax(padded, -1)[..., :length]
    return weights if out is None else out.copy_(weights)


def softmax_backward(grad: Tensor, weights: Tensor) -> Tensor:
    """Differentiate with respect to the scores: `grad` and `weights`, the result of `softmax`, are (…, S)."""
    length, backward = weights.shape[-1], torch.ops.aten._softmax_backward_data
    if weights.device.type != "cpu" or length >= SOFTMAX_LANES:
        return backward(grad, weights, -1, weights.dtype)
    padded = (F.pad(rows, (0, SOFTMAX_LANES - length)) for rows in (grad, weights))
    return backward(*padded, -1, weights.dtype)[..., :length]


def attend(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool, dropout_rate: float
) -> Tensor:
    """Attend by batched matmuls on a CPU, as `pipeline.models.transformer.multi_head_attention.attend`."""
    batch, heads = queries.shape[:2]
    if causal:
        length = keys.shape[2]
        mask = torch.ones(1, 1, length, length, dtype=torch.bool, device=keys.device).tril()
    # Copy before transposing: matrix multiplication reads a transposed matrix well, a strided one badly.
    queries, keys, values = (x.reshape(batch * heads, *x.shape[2:]) for x in (queries, keys, values))
    bias, scale = _additive_mask(mask, batch, heads, queries.dtype), queries.shape[-1] ** -0.5
    scores = torch.baddbmm(bias, queries, keys.transpose(1, 2), beta=int(mask is not None), alpha=scale)
    # In float32, which is also the faster dtype for short rows.
    weights = softmax(scores.float()).to(values.dtype)
    weights = dropout(weights, dropout_rate) if dropout_rate else weights
    return torch.bmm(weights, values).unflatten(0, (batch, heads))


def _additive_mask(mask: Tensor | None, batch: int, heads: int, dtype: torch.dtype) -> Tensor:
    """Return 0 where a query may attend and -inf elsewhere, broadcastable to (B * H, T, S)."""
    if mask is None:
        return torch.zeros(1, 1, 1, dtype=dtype)
    bias = torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, -torch.inf)
    return bias[0] if len(mask) == 1 else bias.expand(batch, heads, -1, -1).flatten(0, 1)
