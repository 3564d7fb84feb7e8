"""Noise in training: dropout, alone and fused with its neighbours, and scheduled sampling.

Scheduled sampling (Bengio et al. 2015; Cold Fusion, section 4.3: rate 0.2) computes the loss step by step: with
probability `rate` the decoder reads a symbol drawn from its own prediction in place of the reference. All random
numbers come from torch's global generator, which the trainer seeds for every micro-batch.

Dimensions: B sentences, T symbols, V vocabulary.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from pipeline.models import kernels
from pipeline.models.kernels import dropout as kernel
from pipeline.models.layers.loss import masked_loss
from pipeline.models.layers.positions import cached_indices
from pipeline.models.seq2seq import LossSums, Seq2Seq
from pipeline.models.settings import BOS, EOS, PAD


def dropout(x: Tensor, probability: float) -> Tensor:
    """Zero each element with `probability` and scale the others by 1 / (1 - probability).

    Args:
        x: Tensor of any shape.
        probability: In [0, 1); 0 returns `x` itself.

    Returns:
        Tensor of the shape of `x`.
    """
    if not probability:
        return x
    return kernel.dropout(x, probability) if kernels.enabled_on_cpu(x) else F.dropout(x, probability)


def dropout_add(residual: Tensor, x: Tensor, probability: float) -> Tensor:
    """Compute residual + dropout(x).

    Args:
        residual: Broadcastable to the shape of `x`; gives the dtype of the result.
        x: Tensor of any shape.
        probability: Probability of dropping an element of `x`, in [0, 1).

    Returns:
        Tensor of the shape of `x`.
    """
    if not probability:
        return residual + x
    if kernels.enabled_on_cpu(x):
        return kernel.dropout_add(residual, x, probability)
    return residual + F.dropout(x, probability)


def relu_dropout(x: Tensor, probability: float) -> Tensor:
    """Compute dropout(max(0, `x`)) with the `probability` of dropping an element, in [0, 1); see `dropout`."""
    if not probability:
        return F.relu(x)
    return kernel.relu_dropout(x, probability) if kernels.enabled_on_cpu(x) else F.dropout(F.relu(x), probability)


NEVER_READ = (PAD, BOS, EOS)


def unrolled_loss(model: Seq2Seq, batch, label_smoothing: float, rate: float) -> LossSums:
    """Return the summed loss of `unrolled_logits` over all target symbols, in nats; see `Seq2Seq.loss`."""
    logits = unrolled_logits(model, batch, rate if model.training else 0.0)
    return masked_loss(logits, batch, label_smoothing)


def unrolled_logits(model: Seq2Seq, batch, rate: float) -> Tensor:
    """Compute the logits of all target positions step by step.

    Args:
        model: Any model that can be decoded.
        batch: Source of B sentences, and the reference that the decoder reads.
        rate: Probability that the decoder reads its own prediction in place of the reference.

    Returns:
        Float32 logits, shape (B, T, V).
    """
    source, cache = model.start(batch)
    inputs, steps = DecoderInputs(batch.tgt_in, rate), list[Tensor]()
    for position in range(batch.tgt_in.shape[1]):
        symbols = inputs.at(position, lambda: steps[-1].squeeze(1))
        logits, cache = model.step(symbols.unsqueeze(1), source, cache)
        steps.append(logits)
    return torch.cat(steps, dim=1)


class DecoderInputs:
    """Symbols that a decoder reads, from the reference or from its own predictions.

    Args:
        reference: Teacher-forced decoder inputs, shape (B, T).
        rate: Probability of reading a prediction.
    """

    def __init__(self, reference: Tensor, rate: float):
        self.reference, self.rate = reference.t(), rate
        self.own = torch.rand(self.reference.shape, device=reference.device) < rate
        self.noise: Tensor | None = None

    def at(self, position: int, logits: Callable[[], Tensor]) -> Tensor:
        """Return the symbols to read at a position.

        Args:
            position: Index of the position, from 0 to T - 1.
            logits: Gives the prediction of these symbols, shape (B, V); called only if it is needed.

        Returns:
            Symbols (B,).
        """
        if not position or not self.rate:
            return self.reference[position]
        predicted = logits()
        if self.noise is None:  # drawn for all positions at once: each draw is a kernel launch
            self.noise = negated_gumbel_noise((len(self.reference), *predicted.shape), predicted.device)
        return torch.where(self.own[position], sample(predicted, self.noise[position]), self.reference[position])


def negated_gumbel_noise(shape: tuple[int, ...], device: torch.device) -> Tensor:
    """Return negated Gumbel noise of a `shape` (…, V), the logarithm of exponential noise.

    It is infinite for PAD, BOS and EOS, which a decoder never reads as a prediction.
    """
    noise = torch.empty(shape, device=device).exponential_().log_()
    return noise.index_fill_(-1, cached_indices(device, *NEVER_READ), torch.inf)


@torch.no_grad()
def sample(logits: Tensor, noise: Tensor) -> Tensor:
    """Draw a symbol (…,) per distribution by the Gumbel-max trick: `logits` and negated Gumbel `noise` are (…, V)."""
    return (logits - noise).argmax(-1)
