"""Label-smoothed cross-entropy fused with the projection onto the vocabulary.

Logits, log-probabilities and their gradient are each N x V, by far the largest tensors of a training step. Here rows go
through projection, softmax and both gradient products chunk by chunk in the forward pass: only one chunk's
probabilities ever exist, the softmax is computed once, and it is all that is done element by element.

Dimensions: N target subwords (no padding), D features, V vocabulary.
"""

import torch
from torch import Tensor
from torch.autograd import Function

from pipeline.core.symbols import PAD
from pipeline.models.seq2seq import LossSums

CHUNK_LOGITS = 1 << 23
"""Logits held at once: 16 MiB of bfloat16, about what a processor's last-level cache holds."""
SHARE_OF_MEMORY = 1 / 16
"""Of a GPU, for the same: there fewer, larger chunks are faster."""

SMALLEST = torch.finfo(torch.float32).tiny


def projected_loss(features: Tensor, weight: Tensor, bias: Tensor | None, batch, label_smoothing: float) -> LossSums:
    """`projected_cross_entropy` of features (B, T, D) and the targets of a batch, of which padding counts nothing."""
    targets, features = batch.tgt_out.flatten(), features.flatten(0, 1)
    if batch.on_grid:
        loss, nll = projected_cross_entropy(features, weight, bias, targets, label_smoothing, targets != PAD)
        return LossSums(loss, nll, batch.num_tokens)
    real = batch.real_targets
    if len(real) < len(features):
        features, targets = features.index_select(0, real), targets.index_select(0, real)
    loss, nll = projected_cross_entropy(features, weight, bias, targets, label_smoothing)
    return LossSums(loss, nll, len(real))


def chunk_rows(features: Tensor, vocabulary: int) -> int:
    """How many rows of logits are held at once."""
    held = CHUNK_LOGITS
    if features.is_cuda:
        memory = torch.cuda.get_device_properties(features.device).total_memory
        held = int(SHARE_OF_MEMORY * memory) // features.element_size()
    return max(1, held // vocabulary)


def projected_cross_entropy(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    label_smoothing: float,
    real: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Summed loss and negative log-likelihood of `targets` under softmax(features weight^T + bias), in nats.

    features (N, D), weight (V, D), bias (V,) or None, targets (N,) int64. The target distribution has mass
    1 - label_smoothing on the target and label_smoothing / (V - 1) on each other symbol (tensor2tensor's reading of
    section 5.4). Under autocast the products are done in its type, everything else in float32. real (N,) bool: False at
    rows that count nothing; None if all count.

    Returns (loss to differentiate, negative log-likelihood without smoothing, detached).
    """
    device = features.device.type
    if torch.is_autocast_enabled(device):
        features = features.to(torch.get_autocast_dtype(device))
    with torch.autocast(device, enabled=False):
        differentiate = torch.is_grad_enabled()
        return ProjectedCrossEntropy.apply(features, weight, bias, targets, label_smoothing, real, differentiate)


def smoothed_cross_entropy(
    logits: Tensor, targets: Tensor, label_smoothing: float, real: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The same of logits (N, V) that are there already, for vocabularies so small that nothing is gained by fusing."""
    log_probs = logits.float().log_softmax(-1)
    if real is not None:
        log_probs = log_probs.masked_fill(~real.unsqueeze(1), 0.0)
    nll = -log_probs.gather(-1, targets.unsqueeze(-1)).sum()
    base = label_smoothing / (logits.shape[-1] - 1)
    loss = (1 - label_smoothing - base) * nll - base * log_probs.sum() if label_smoothing else nll
    return loss, nll.detach()


class ProjectedCrossEntropy(Function):
    @staticmethod
    def forward(ctx, features, weight, bias, targets, label_smoothing, real, differentiate):
        rows, counted = chunk_rows(features, len(weight)), len(features)
        if real is not None:
            # Rows of zeros add nothing to the gradient of the weights.
            real, counted = real.float().unsqueeze(1), real.sum()
            features = features * real.to(features.dtype)
        narrow = weight.to(features.dtype)
        # Mass of every symbol, and the target's on top of it.
        base = label_smoothing / (len(weight) - 1)
        peak = 1 - label_smoothing - base
        gradients = Gradients(features, weight, bias, peak) if differentiate else None
        nll, log_partitions = torch.zeros(2, dtype=torch.float64, device=features.device)
        for first in range(0, len(features), rows):
            chunk, target = features[first : first + rows], targets[first : first + rows].unsqueeze(1)
            counts = None if real is None else real[first : first + rows]
            scores = chunk @ narrow.t() if bias is None else torch.addmm(bias.to(narrow.dtype), chunk, narrow.t())
            probs = torch.softmax(scores, dim=1)
            chunk_nll = -probs.gather(1, target).float().clamp_min(SMALLEST).log()
            partitions = scores.gather(1, target).float() + chunk_nll
            nll += total(chunk_nll, counts)
            log_partitions += total(partitions, counts)
            if gradients:
                gradients.add(first, chunk, narrow, probs, target.squeeze(1), counts)
        # Sums over all rows of what is linear in the features need no N x V.
        features_sum, weight_sum = features.sum(0, dtype=torch.float32), weight.sum(0)
        all_scores = features_sum @ weight_sum + (0 if bias is None else counted * bias.sum())
        loss = peak * nll + base * (len(weight) * log_partitions - all_scores)
        if gradients:
            gradients.subtract_uniform(base, features_sum, weight_sum, counted, real)
            ctx.save_for_backward(gradients.features, gradients.weight, gradients.bias)
        ctx.set_materialize_grads(False)
        loss, nll = loss.float(), nll.float()
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx, grad_loss, _):
        grads = (None if grad is None else grad * grad_loss for grad in ctx.saved_tensors)
        return (*grads, None, None, None, None)


def total(x: Tensor, counts: Tensor | None) -> Tensor:
    """Sum x (n, 1) over the rows where counts (n, 1) is 1."""
    return x.sum() if counts is None else torch.dot(x.squeeze(1), counts.squeeze(1))


class Gradients:
    """The gradients of the loss, gathered chunk by chunk.

    That of the logits is probs - peak · onehot(target) - base. Only probs are N x V: the second term is a gather, and
    the third, the same in every entry, a column sum.
    """

    def __init__(self, features: Tensor, weight: Tensor, bias: Tensor | None, peak: float):
        self.peak = peak
        self.features = torch.empty_like(features)
        self.weight = torch.zeros_like(weight)
        self.bias = None if bias is None else torch.zeros_like(bias)

    def add(
        self, first: int, features: Tensor, weight: Tensor, probs: Tensor, target: Tensor, counts: Tensor | None
    ) -> None:
        """One chunk: features (n, D), weight (V, D), probs (n, V), target (n,), counts (n, 1): 0 at rows that count
        nothing, whose features are zero."""
        by_features = probs @ weight - self.peak * weight[target]
        if counts is not None:
            by_features *= counts.to(by_features.dtype)
        self.features[first : first + len(features)] = by_features
        self.weight += probs.t() @ features
        self.weight.index_add_(0, target, features.to(self.weight.dtype), alpha=-self.peak)
        if self.bias is not None:
            ones = torch.ones_like(target, dtype=self.bias.dtype) if counts is None else counts.squeeze(1)
            found = torch.zeros_like(self.bias).index_add_(0, target, ones)
            mass = probs.sum(0) if counts is None else (counts.to(probs.dtype).t() @ probs).squeeze(0)
            self.bias += mass - self.peak * found

    def subtract_uniform(
        self, base: float, features_sum: Tensor, weight_sum: Tensor, counted: int | Tensor, real: Tensor | None
    ) -> None:
        """features_sum, weight_sum: (D,); counted: how many rows count; real (N, 1): 1 at those, None if all do."""
        self.weight -= base * features_sum
        uniform = base * weight_sum if real is None else real * (base * weight_sum)
        self.features -= uniform.to(self.features.dtype)
        if self.bias is not None:
            self.bias -= base * counted
