"""Dropout(embedding · scale + positions) on a GPU, one kernel each way.

torch needs four kernels and a cast, each of which reads and writes float32 vectors. Here one kernel reads the
embeddings and writes the sum in the dtype of autocast. The mask of the dropout is drawn again in the backward pass.

Dimensions: B sentences, T positions, D features, V vocabulary.
"""

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pipeline.models.kernels.gpu import draw_seed, dropout_levels, fused
from pipeline.models.kernels.residual_norm import power_of_2_width


def suits(weight: Tensor, positions: Tensor) -> bool:
    """Return whether the kernels can embed by `weight` (V, D) and `positions`, which they do in training only."""
    constant = positions.dim() == 2 and not positions.requires_grad and torch.is_grad_enabled()
    return constant and power_of_2_width(weight) and fused(weight, output_dtype(weight))


def output_dtype(weight: Tensor) -> torch.dtype:
    """Return the dtype of autocast on a GPU, or that of the embeddings without autocast."""
    return torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else weight.dtype


def embed(weight: Tensor, tokens: Tensor, positions: Tensor, scale: float, probability: float) -> Tensor:
    """Compute Dropout(embedding · scale + positions).

    Args:
        weight: Float32 embeddings, shape (V, D).
        tokens: Shape (B, T).
        positions: Float32 encodings, shape (T, D), or (1, D) for all positions.
        scale: Factor of the embeddings.
        probability: Probability of dropping an element, in [0, 1).

    Returns:
        Shape (B, T, D), in the dtype of autocast.
    """
    seed = draw_seed(weight) if probability else None
    return _EmbeddingFunction.apply(weight, tokens.contiguous(), positions.contiguous(), seed, scale, probability)


class _EmbeddingFunction(torch.autograd.Function):
    """Autograd function of `embed`."""

    @staticmethod
    def forward(ctx, weight, tokens, positions, seed, scale, probability):
        from pipeline.models.kernels.triton_programs import embed_forward

        ctx.save_for_backward(tokens, seed)
        ctx.symbols, ctx.dtype, ctx.factors = len(weight), weight.dtype, (scale, *dropout_levels(probability))
        out = weight.new_empty(*tokens.shape, weight.shape[1], dtype=output_dtype(weight))
        inputs = tokens, weight, positions, out, seed, len(positions)
        embed_forward[(tokens.numel(),)](*inputs, *ctx.factors, WIDTH=weight.shape[1], num_warps=1)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        """Differentiate with respect to the embeddings; torch sums the gradients of equal symbols."""
        from pipeline.models.kernels.triton_programs import embed_backward

        tokens, seed = ctx.saved_tensors
        wide = torch.empty_like(grad, dtype=ctx.dtype, memory_format=torch.contiguous_format)
        sizes = {"WIDTH": grad.shape[-1], "num_warps": 1}
        embed_backward[(tokens.numel(),)](grad.contiguous(), wide, seed, *ctx.factors, **sizes)
        grad_weight = torch.ops.aten.embedding_dense_backward(wide, tokens, ctx.symbols, -1, False)
        return grad_weight, None, None, None, None, None
