"""The loss of a model that is taken position by position, some of its inputs its own predictions.

Scheduled sampling (Bengio et al. 2015; Cold Fusion, section 4.3: rate 0.2): with probability `rate` a position reads a
symbol drawn from the distribution that the model gave it, in place of the reference's. All random numbers come from
torch's global generator, which the trainer seeds for every micro-batch.

Dimensions: B sentences, T symbols, V vocabulary.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from pipeline.core.symbols import BOS, EOS, PAD
from pipeline.models.layers.loss import smoothed_cross_entropy
from pipeline.models.layers.reading import numbers_on
from pipeline.models.seq2seq import LossSums, Seq2Seq

NEVER_READ = (PAD, BOS, EOS)


def unrolled_loss(model: Seq2Seq, batch, label_smoothing: float, rate: float) -> LossSums:
    """Summed loss of a batch through `model.start` and `model.step`; teacher-forced outside training."""
    logits = unrolled_logits(model, batch, rate if model.training else 0.0)
    return masked_loss(logits, batch, label_smoothing)


def masked_loss(logits: Tensor, batch, label_smoothing: float) -> LossSums:
    """logits (B, T, V) of the targets of a batch; padding counts nothing."""
    if batch.on_grid:
        targets = batch.tgt_out.flatten()
        found = smoothed_cross_entropy(logits.flatten(0, 1), targets, label_smoothing, targets != PAD)
        return LossSums(*found, batch.num_tokens)
    real = batch.real_targets
    loss, nll = smoothed_cross_entropy(logits.flatten(0, 1)[real], batch.tgt_out.flatten()[real], label_smoothing)
    return LossSums(loss, nll, len(real))


def unrolled_logits(model: Seq2Seq, batch, rate: float) -> Tensor:
    """(B, T, V)"""
    source, cache = model.start(batch)
    inputs, steps = Inputs(batch.tgt_in, rate), list[Tensor]()
    for position in range(batch.tgt_in.shape[1]):
        symbols = inputs.at(position, lambda: steps[-1].squeeze(1))
        logits, cache = model.step(symbols.unsqueeze(1), source, cache)
        steps.append(logits)
    return torch.cat(steps, dim=1)


class Inputs:
    """Symbols that a model reads: the reference's (B, T), or with probability `rate` drawn from its own prediction."""

    def __init__(self, reference: Tensor, rate: float):
        self.reference, self.rate = reference.t(), rate
        self.own = torch.rand(self.reference.shape, device=reference.device) < rate
        self.clocks: Tensor | None = None

    def at(self, position: int, logits: Callable[[], Tensor]) -> Tensor:
        """(B,); logits (B, V) are the prediction of them, which is not always asked for."""
        if not position or not self.rate:
            return self.reference[position]
        predicted = logits()
        if self.clocks is None:  # all at once: each is a launch
            self.clocks = log_clocks((len(self.reference), *predicted.shape), predicted.device)
        return torch.where(self.own[position], sampled(predicted, self.clocks[position]), self.reference[position])


def log_clocks(shape: tuple[int, ...], device: torch.device) -> Tensor:
    """Logarithms of when exponential clocks ring, (…, V); those of symbols that are never read don't."""
    clocks = torch.empty(shape, device=device).exponential_().log_()
    return clocks.index_fill_(-1, numbers_on(device, *NEVER_READ), torch.inf)


@torch.no_grad()
def sampled(logits: Tensor, clocks: Tensor) -> Tensor:
    """One symbol a distribution, (…,) of (…, V): the first of `log_clocks` to ring, by Gumbel's argument."""
    return (logits - clocks).argmax(-1)
