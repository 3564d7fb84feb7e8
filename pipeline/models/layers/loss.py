"""Label-smoothed cross-entropy, of logits or fused with the projection onto the vocabulary.

The target distribution has mass 1 - ε on the target and ε / (V - 1) on each other symbol. This is how tensor2tensor
reads section 5.4 of Attention Is All You Need.

Dimensions: B sentences, T target positions, N target subwords, D features, V vocabulary.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from pipeline.models import kernels
from pipeline.models.kernels import cross_entropy
from pipeline.models.seq2seq import LossSums
from pipeline.models.settings import PAD


def projected_loss(features: Tensor, weight: Tensor, bias: Tensor | None, batch, label_smoothing: float) -> LossSums:
    """Compute the summed loss of a batch from the input of its output layer, without padding.

    Args:
        features: Input of the output layer, shape (B, T, D).
        weight: Weight of the output layer, shape (V, D).
        bias: Shape (V,); None if the layer has none.
        batch: Targets, and which of them are symbols. With `on_grid`, shapes stay fixed and padding is masked.
        label_smoothing: ε in [0, 1).

    Returns:
        Loss, negative log-likelihood and number of target symbols.
    """
    targets, features = batch.tgt_out.flatten(), features.flatten(0, 1)
    if batch.on_grid:
        loss, nll = projected_cross_entropy(features, weight, bias, targets, label_smoothing, targets != PAD)
        return LossSums(loss, nll, batch.num_tokens)
    real = batch.real_targets
    if len(real) < len(features):
        features, targets = features.index_select(0, real), targets.index_select(0, real)
    loss, nll = projected_cross_entropy(features, weight, bias, targets, label_smoothing)
    return LossSums(loss, nll, len(real))


def masked_loss(logits: Tensor, batch, label_smoothing: float) -> LossSums:
    """Compute the summed loss of a batch from its `logits` (B, T, V), without padding; see `projected_loss`."""
    if batch.on_grid:
        targets = batch.tgt_out.flatten()
        found = smoothed_cross_entropy(logits.flatten(0, 1), targets, label_smoothing, targets != PAD)
        return LossSums(*found, batch.num_tokens)
    real = batch.real_targets
    loss, nll = smoothed_cross_entropy(logits.flatten(0, 1)[real], batch.tgt_out.flatten()[real], label_smoothing)
    return LossSums(loss, nll, len(real))


def projected_cross_entropy(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    label_smoothing: float,
    real: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute the summed loss of `targets` under softmax(features weight^T + bias), in nats.

    Under autocast the matrix multiplications use its dtype and everything else float32.

    Args:
        features: Shape (N, D).
        weight: Shape (V, D).
        bias: Shape (V,), or None.
        targets: Symbol ids, int64, shape (N,).
        label_smoothing: ε in [0, 1).
        real: Mask (N,), False at rows to ignore; None to count all rows.

    Returns:
        Two scalars: the loss to differentiate, and the negative log-likelihood without smoothing, detached.
    """
    if not kernels.enabled():
        return smoothed_cross_entropy(F.linear(features, weight, bias), targets, label_smoothing, real)
    device = features.device.type
    if torch.is_autocast_enabled(device):
        features = features.to(torch.get_autocast_dtype(device))
    with torch.autocast(device, enabled=False):
        return cross_entropy.projected_cross_entropy(features, weight, bias, targets, label_smoothing, real)


def smoothed_cross_entropy(
    logits: Tensor, targets: Tensor, label_smoothing: float, real: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Compute the summed loss of `targets` under softmax(`logits` (N, V)); see `projected_cross_entropy`."""
    log_probs = logits.float().log_softmax(-1)
    if real is not None:
        log_probs = log_probs.masked_fill(~real.unsqueeze(1), 0.0)
    nll = -log_probs.gather(-1, targets.unsqueeze(-1)).sum()
    base = label_smoothing / (logits.shape[-1] - 1)
    loss = (1 - label_smoothing - base) * nll - base * log_probs.sum() if label_smoothing else nll
    return loss, nll.detach()
