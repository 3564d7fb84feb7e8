"""Label-smoothed cross-entropy fused with the projection onto the vocabulary.

Logits, log-probabilities and their gradient are each N x V, by far the largest tensors of a training step. Here rows go
through projection, softmax and both gradient products chunk by chunk in the forward pass, so only one chunk's float32
log-probabilities ever exist and the softmax is computed once.

Dimensions: N target subwords (no padding), D features, V vocabulary.
"""

import torch
from torch import Tensor
from torch.autograd import Function

CHUNK_LOGITS = 1 << 22
"""Logits held at once: 16 MiB of float32, about what a processor's last-level cache holds."""


def projected_cross_entropy(
    features: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, label_smoothing: float
) -> tuple[Tensor, Tensor]:
    """Summed loss and negative log-likelihood of `targets` under softmax(features weight^T + bias), in nats.

    features (N, D), weight (V, D), bias (V,) or None, targets (N,) int64. The target distribution has mass
    1 - label_smoothing on the target and label_smoothing / (V - 1) on each other symbol (tensor2tensor's reading of
    section 5.4). Under autocast the products are done in its type, everything else in float32.

    Returns (loss to differentiate, negative log-likelihood without smoothing, detached).
    """
    device = features.device.type
    if torch.is_autocast_enabled(device):
        features = features.to(torch.get_autocast_dtype(device))
    with torch.autocast(device, enabled=False):
        return ProjectedCrossEntropy.apply(features, weight, bias, targets, label_smoothing, torch.is_grad_enabled())


class ProjectedCrossEntropy(Function):
    @staticmethod
    def forward(ctx, features, weight, bias, targets, label_smoothing, differentiate):
        rows = max(1, CHUNK_LOGITS // len(weight))
        # Mass of every symbol, and the target's on top of it.
        base = label_smoothing / (len(weight) - 1)
        peak = 1 - label_smoothing - base
        narrow = weight.to(features.dtype)
        sums = Sums(features, weight, bias) if differentiate else None
        loss = torch.zeros((), device=features.device, dtype=torch.float64)
        nll = torch.zeros_like(loss)
        for first in range(0, len(features), rows):
            chunk, target = features[first : first + rows], targets[first : first + rows].unsqueeze(1)
            log_probs = torch.log_softmax(logits(chunk, narrow, bias), dim=-1, dtype=torch.float32)
            chunk_nll = -log_probs.gather(1, target).sum(dtype=torch.float64)
            nll += chunk_nll
            loss += peak * chunk_nll
            if base:
                loss -= base * log_probs.sum(dtype=torch.float64)
            if differentiate:
                probs = log_probs.exp_().scatter_add_(1, target, log_probs.new_full(target.shape, -peak))
                sums.add(first, chunk, narrow, probs)
        if differentiate:
            sums.subtract_uniform(base, features, weight)
            ctx.save_for_backward(sums.features, sums.weight, sums.bias)
        ctx.set_materialize_grads(False)
        loss, nll = loss.float(), nll.float()
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx, grad_loss, _):
        features, weight, bias = ctx.saved_tensors
        grads = (None if grad is None else grad * grad_loss for grad in (features, weight, bias))
        return (*grads, None, None, None)


def logits(features: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    products = features @ weight.t()
    return products if bias is None else products + bias


class Sums:
    """The gradients of the loss, gathered chunk by chunk.

    The gradient of the logits is softmax - peak·onehot(target) - base: the last term, the same in every entry, is left
    to `subtract_uniform`, which costs a column sum instead of a pass over N x V.
    """

    def __init__(self, features: Tensor, weight: Tensor, bias: Tensor | None):
        self.features = torch.empty_like(features)
        self.weight = torch.zeros_like(weight)
        self.bias = None if bias is None else torch.zeros_like(bias)

    def add(self, first: int, features: Tensor, weight: Tensor, probs: Tensor) -> None:
        narrow = probs.to(weight.dtype)
        torch.mm(narrow, weight, out=self.features[first : first + len(features)])
        self.weight += narrow.t() @ features
        if self.bias is not None:
            self.bias += probs.sum(0)

    def subtract_uniform(self, base: float, features: Tensor, weight: Tensor) -> None:
        if not base:
            return
        self.features -= base * weight.sum(0)
        self.weight -= base * features.sum(0, dtype=torch.float32)
        if self.bias is not None:
            self.bias -= base * len(features)
