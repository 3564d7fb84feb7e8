"""Label-smoothed cross-entropy fused with the projection onto the vocabulary.

Logits, log-probabilities and their gradient are each N x V, by far the largest tensors of a training step. Here rows go
through projection, softmax and both gradients chunk by chunk in the forward pass. Only the probabilities of one chunk
exist at a time, and the softmax is computed once.

Dimensions: N target subwords, D features, V vocabulary, n rows of a chunk.
"""

import torch
from torch import Tensor

from pipeline.models.kernels import programs
from pipeline.models.kernels.gpu import fused

CHUNK_LOGITS = 1 << 23
"""Logits held at once: 16 MiB of bfloat16, about the last-level cache of a processor."""
MEMORY_SHARE = 1 / 16
"""The same as a share of a GPU's memory, where fewer and larger chunks are faster."""

SMALLEST = torch.finfo(torch.float32).tiny


def projected_cross_entropy(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    label_smoothing: float,
    real: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute loss and negative log-likelihood, as `pipeline.models.layers.loss.projected_cross_entropy`."""
    enabled = torch.is_grad_enabled()
    return _ProjectedCrossEntropyFunction.apply(features, weight, bias, targets, label_smoothing, real, enabled)


def chunk_rows(features: Tensor, vocabulary: int) -> int:
    """Return how many rows of logits, at least 1, are held at once, given `features` (N, D) and `vocabulary`."""
    held = CHUNK_LOGITS
    if features.is_cuda:
        memory = torch.cuda.get_device_properties(features.device).total_memory
        held = int(MEMORY_SHARE * memory) // features.element_size()
    return max(1, held // vocabulary)


class _ProjectedCrossEntropyFunction(torch.autograd.Function):
    """Autograd function of `projected_cross_entropy`, whose gradients are computed in the forward pass."""

    @staticmethod
    def forward(ctx, features, weight, bias, targets, label_smoothing, real, differentiate):
        """Compute loss and negative log-likelihood, and the gradients if they are needed."""
        rows, num_real = chunk_rows(features, len(weight)), len(features)
        if real is not None:
            # Rows of zeros add nothing to the gradient of the weights.
            real, num_real = real.float().unsqueeze(1), real.sum()
            features = features * real.to(features.dtype)
        cast = weight.to(features.dtype)
        # Mass of every symbol, and what the target has on top of it.
        base = label_smoothing / (len(weight) - 1)
        peak = 1 - label_smoothing - base
        gradients = Gradients(features, weight, bias, peak) if differentiate else None
        nll, log_partitions = torch.zeros(2, dtype=torch.float64, device=features.device)
        for first in range(0, len(features), rows):
            chunk, target = features[first : first + rows], targets[first : first + rows].unsqueeze(1)
            counts = None if real is None else real[first : first + rows]
            scores = chunk @ cast.t() if bias is None else torch.addmm(bias.to(cast.dtype), chunk, cast.t())
            if fused(scores):
                target_scores, partitions = scores.gather(1, target).float(), softmax_(scores)
                probs, chunk_nll = scores, partitions - target_scores
            else:
                probs = torch.softmax(scores, dim=1)
                chunk_nll = -probs.gather(1, target).float().clamp_min(SMALLEST).log()
                partitions = scores.gather(1, target).float() + chunk_nll
            nll += masked_sum(chunk_nll, counts)
            log_partitions += masked_sum(partitions, counts)
            if gradients:
                gradients.add(first, chunk, cast, probs, target.squeeze(1), counts)
        # Sums over all rows that are linear in the features need no N x V tensor.
        features_sum, weight_sum = features.sum(0, dtype=torch.float32), weight.sum(0)
        all_scores = features_sum @ weight_sum + (0 if bias is None else num_real * bias.sum())
        loss = peak * nll + base * (len(weight) * log_partitions - all_scores)
        if gradients:
            gradients.subtract_uniform(base, features_sum, weight_sum, num_real, real)
            ctx.save_for_backward(gradients.features, gradients.weight, gradients.bias)
        ctx.set_materialize_grads(False)
        loss, nll = loss.float(), nll.float()
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx, grad_loss, _):
        grads = (None if grad is None else grad * grad_loss for grad in ctx.saved_tensors)
        return (*grads, None, None, None, None)


def softmax_(scores: Tensor) -> Tensor:
    """Turn scores (n, V) into probabilities in place, and return the log-partitions (n, 1)."""
    partitions = torch.empty(len(scores), 1, device=scores.device)
    programs().softmax_in_place[(len(scores),)](scores, partitions, COLUMNS=scores.shape[1], BLOCK=8192, num_warps=16)
    return partitions


def masked_sum(x: Tensor, counts: Tensor | None) -> Tensor:
    """Sum a column `x` (n, 1) over the rows where `counts` (n, 1) is 1, not 0; None counts all rows."""
    return x.sum() if counts is None else torch.dot(x.squeeze(1), counts.squeeze(1))


class Gradients:
    """Gradients of the loss, summed chunk by chunk.

    The gradient of the logits is probs - peak · onehot(target) - base. Only probs are N x V: the second term is a
    gather, and the third, the same in every entry, a column sum.

    Args:
        features: Shape (N, D); gives shape and dtype of its gradient.
        weight: Shape (V, D); gives shape and dtype of its gradient.
        bias: Shape (V,), or None.
        peak: Target mass of the reference symbol beyond that of every symbol.
    """

    def __init__(self, features: Tensor, weight: Tensor, bias: Tensor | None, peak: float):
        self.peak = peak
        self.features = torch.empty_like(features)
        self.weight = torch.zeros_like(weight)
        self.bias = None if bias is None else torch.zeros_like(bias)

    def add(
        self, first: int, features: Tensor, weight: Tensor, probs: Tensor, target: Tensor, counts: Tensor | None
    ) -> None:
        """Add the first two terms of one chunk.

        Args:
            first: Row where the chunk starts.
            features: Shape (n, D).
            weight: Shape (V, D), in the dtype of the features.
            probs: Shape (n, V).
            target: Shape (n,).
            counts: Shape (n, 1), 0 at rows to ignore, whose features are zero; None to count all rows.
        """
        grad_features = probs @ weight - self.peak * weight[target]
        if counts is not None:
            grad_features *= counts.to(grad_features.dtype)
        self.features[first : first + len(features)] = grad_features
        self.weight += probs.t() @ features
        self.weight.index_add_(0, target, features.to(self.weight.dtype), alpha=-self.peak)
        if self.bias is not None:
            ones = torch.ones_like(target, dtype=self.bias.dtype) if counts is None else counts.squeeze(1)
            occurrences = torch.zeros_like(self.bias).index_add_(0, target, ones)
            mass = probs.sum(0) if counts is None else (counts.to(probs.dtype).t() @ probs).squeeze(0)
            self.bias += mass - self.peak * occurrences

    def subtract_uniform(
        self, base: float, features_sum: Tensor, weight_sum: Tensor, num_real: int | Tensor, real: Tensor | None
    ) -> None:
        """Subtract the third term of all rows.

        Args:
            base: Target mass of every symbol.
            features_sum: Sum of the features over the rows that count, shape (D,).
            weight_sum: Sum of the weight over the vocabulary, shape (D,).
            num_real: Number of rows that count.
            real: Shape (N, 1), 1 at these rows; None if all count.
        """
        self.weight -= base * features_sum
        uniform = base * weight_sum if real is None else real * (base * weight_sum)
        self.features -= uniform.to(self.features.dtype)
        if self.bias is not None:
            self.bias -= base * num_real
