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
        narrow = weight.to(features.dtype)
        # Mass of every symbol, and the target's on top of it.
        base = label_smoothing / (len(weight) - 1)
        peak = 1 - label_smoothing - base
        gradients = Gradients(features, weight, bias, peak, base) if differentiate else None
        sum_target, sum_all = torch.zeros(2, dtype=torch.float64, device=features.device)
        for first in range(0, len(features), rows):
            chunk, target = features[first : first + rows], targets[first : first + rows]
            scores = chunk @ narrow.t()
            scores = scores.float() if bias is None else scores.float() + bias
            scores -= scores.amax(1, keepdim=True)
            target_scores, total_scores = scores.gather(1, target.unsqueeze(1)), scores.sum(1)
            exponentials = scores.exp_()
            partition = exponentials.sum(1)
            log_partition = partition.log()
            sum_target += (target_scores.squeeze(1) - log_partition).sum()
            sum_all += (total_scores - len(weight) * log_partition).sum()
            if differentiate:
                gradients.add(first, chunk, narrow, exponentials, partition, target)
        if differentiate:
            gradients.finish(features, weight, targets)
            ctx.save_for_backward(gradients.features, gradients.weight, gradients.bias)
        ctx.set_materialize_grads(False)
        loss, nll = -(peak * sum_target + base * sum_all).float(), -sum_target.float()
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx, grad_loss, _):
        grads = (None if grad is None else grad * grad_loss for grad in ctx.saved_tensors)
        return (*grads, None, None, None)


class Gradients:
    """The gradients of the loss, gathered chunk by chunk.

    That of the logits is exponentials / partition - peak · onehot(target) - base. Only the exponentials are N x V: the
    division becomes a scale of rows of features, the second term a gather, and the third, the same in every entry, a
    column sum.
    """

    def __init__(self, features: Tensor, weight: Tensor, bias: Tensor | None, peak: float, base: float):
        self.peak, self.base = peak, base
        self.features = torch.empty_like(features)
        self.weight = torch.zeros_like(weight)
        self.bias = None if bias is None else torch.zeros_like(bias)

    def add(
        self,
        first: int,
        features: Tensor,
        weight: Tensor,
        exponentials: Tensor,
        partition: Tensor,
        target: Tensor,
    ) -> None:
        """One chunk: features (n, D), weight (V, D), exponentials (n, V), partition (n,), target (n,)."""
        inverse = partition.reciprocal().unsqueeze(1)
        narrow = exponentials.to(weight.dtype)
        expected = (narrow @ weight) * inverse - self.peak * weight[target]
        self.features[first : first + len(features)] = expected
        self.weight += narrow.t() @ (features * inverse).to(weight.dtype)
        if self.bias is not None:
            self.bias += exponentials.t() @ inverse.squeeze(1)

    def finish(self, features: Tensor, weight: Tensor, targets: Tensor) -> None:
        """The terms that need no softmax, over all rows at once."""
        self.weight.index_add_(0, targets, features.to(weight.dtype), alpha=-self.peak)
        self.features -= (self.base * weight.sum(0)).to(features.dtype)
        self.weight -= self.base * features.sum(0, dtype=weight.dtype)
        if self.bias is not None:
            self.bias -= self.peak * torch.bincount(targets, minlength=len(weight)) + self.base * len(features)
