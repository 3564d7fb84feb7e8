"""The loss of a model that is taken position by position, some of its inputs its own predictions.

Scheduled sampling (Bengio et al. 2015; Cold Fusion, section 4.3: rate 0.2): with probability `rate` a position reads a
symbol drawn from the distribution that the model gave it, in place of the reference's. All random numbers come from
torch's global generator, which the trainer seeds for every micro-batch.

Dimensions: B sentences, T symbols, V vocabulary.
"""

import torch
from torch import Tensor

from pipeline.models.layers.loss import smoothed_cross_entropy
from pipeline.models.layers.reading import numbers_on
from pipeline.models.seq2seq import LossSums, Seq2Seq
from pipeline.symbols import BOS, EOS, PAD

NEVER_READ = (PAD, BOS, EOS)


def unrolled_loss(model: Seq2Seq, batch, label_smoothing: float, rate: float) -> LossSums:
    """Summed loss of a batch through `model.start` and `model.step`; teacher-forced outside training."""
    logits = unrolled_logits(model, batch, rate if model.training else 0.0)
    return masked_loss(logits, batch, label_smoothing)


def masked_loss(logits: Tensor, batch, label_smoothing: float) -> LossSums:
    """logits (B, T, V) of the targets of a batch; padding counts nothing."""
    real = batch.real_targets
    loss, nll = smoothed_cross_entropy(logits.flatten(0, 1)[real], batch.tgt_out.flatten()[real], label_smoothing)
    return LossSums(loss, nll, len(real))


def unrolled_logits(model: Seq2Seq, batch, rate: float) -> Tensor:
    """(B, T, V)"""
    source, cache = model.start(batch)
    own = torch.rand(batch.tgt_in.shape, device=batch.tgt_in.device) < rate
    steps: list[Tensor] = []
    for position in range(batch.tgt_in.shape[1]):
        symbols = batch.tgt_in[:, position : position + 1]
        if position and rate:
            symbols = torch.where(own[:, position : position + 1], sampled(steps[-1]), symbols)
        logits, cache = model.step(symbols, source, cache)
        steps.append(logits)
    return torch.cat(steps, dim=1)


@torch.no_grad()
def sampled(logits: Tensor) -> Tensor:
    """One symbol a distribution, (B, 1) of (B, 1, V): the first of exponential clocks to ring, by Gumbel's argument."""
    clocks = torch.empty_like(logits).exponential_()
    log_rates = logits.index_fill(-1, numbers_on(logits.device, *NEVER_READ), -torch.inf)
    return (log_rates - clocks.log()).argmax(-1)
