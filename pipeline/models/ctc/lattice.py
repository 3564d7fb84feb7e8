"""CTC's loss and gradient from lengths that stay on the device (Graves et al. 2006, section 4.1).

torch's own loss copies the lengths from the host, which a CUDA graph can't. Here the forward variables of each sequence
and of its reversal, which are its backward variables, are computed in one loop over frames.

Dimensions: B utterances, S frames, T characters, L = 2T + 1 states of the lattice: the characters with a blank before,
between and behind them; V vocabulary.
"""

import torch
from torch import Tensor

from pipeline.models.settings import PAD

BLANK = PAD
FIRST_STATES = 2
"""A path begins with the first blank or with the first character."""


def ctc_lattice_loss(log_probs: Tensor, targets: Tensor, frames: Tensor, characters: Tensor) -> Tensor:
    """Compute the negative log-likelihood of each transcript, in nats.

    Args:
        log_probs: Normalised log-probabilities, float32, shape (B, S, V).
        targets: Characters, shape (B, T); symbols behind the end are ignored.
        frames: Frames of each utterance, shape (B,); the loss of an utterance without frames means nothing.
        characters: Characters of each transcript, shape (B,).

    Returns:
        Losses (B,): infinite, with a gradient of zero, if the characters do not fit the frames.
    """
    return _CTCLattice.apply(log_probs, targets, frames, characters)


class _CTCLattice(torch.autograd.Function):
    """`ctc_lattice_loss`, whose gradient is computed in the forward pass."""

    @staticmethod
    def forward(ctx, log_probs: Tensor, targets: Tensor, frames: Tensor, characters: Tensor) -> Tensor:
        """Compute the losses, and save how often each symbol is emitted at each frame, shape (B, S, V)."""
        states = lattice_states(targets)
        emitted = log_probs.gather(2, states.unsqueeze(1).expand(-1, log_probs.shape[1], -1))
        back = Reversal(frames, characters, emitted)
        both = torch.cat((emitted, back.reversed(emitted))).transpose(0, 1).contiguous()
        variables = forward_variables(both, torch.cat((states, states.gather(1, back.state)))).transpose(0, 1)
        ahead, behind = variables.chunk(2)
        log_likelihood = likelihood(ahead, frames, characters)
        occupied = (ahead + back.reversed(behind) - emitted - log_likelihood[:, None, None]).exp()
        possible = back.inside & log_likelihood.isfinite()[:, None, None]
        symbols = torch.arange(log_probs.shape[2], device=states.device)
        # In float64, which neither autocast nor TF32 rounds: gradients of logits are small differences from these.
        one_hot = (states.unsqueeze(2) == symbols).double()
        emissions = torch.bmm(occupied.masked_fill(~possible, 0.0).double(), one_hot)
        ctx.save_for_backward(emissions.to(log_probs.dtype))
        return -log_likelihood

    @staticmethod
    def backward(ctx, grad: Tensor):
        (occupied,) = ctx.saved_tensors
        return -occupied * grad[:, None, None], None, None, None


def lattice_states(targets: Tensor) -> Tensor:
    """Return the symbols (B, L) of the states: a blank before, between and behind the characters `targets` (B, T)."""
    states = targets.new_full((len(targets), 2 * targets.shape[1] + 1), BLANK)
    states[:, 1::2] = targets
    return states


class Reversal:
    """Indices that reverse each utterance's frames and states, within its own lengths.

    Args:
        frames: Frames of each utterance, shape (B,).
        characters: Characters of each transcript, shape (B,).
        emitted: Shape (B, S, L); gives S and L.
    """

    def __init__(self, frames: Tensor, characters: Tensor, emitted: Tensor):
        _, steps, width = emitted.shape
        time, state = (torch.arange(size, device=frames.device) for size in (steps, width))
        frames, last = frames.unsqueeze(1), 2 * characters.unsqueeze(1)
        self.time = torch.where(time < frames, frames - 1 - time, time)
        self.state = torch.where(state <= last, last - state, state)
        self.inside = (time < frames).unsqueeze(2) & (state <= last).unsqueeze(1)

    def reversed(self, x: Tensor) -> Tensor:
        """Reverse `x` (B, S, L) in time and in states."""
        time_reversed = x.gather(1, self.time.unsqueeze(2).expand_as(x))
        return time_reversed.gather(2, self.state.unsqueeze(1).expand_as(x))


def forward_variables(emitted: Tensor, states: Tensor) -> Tensor:
    """Sum the paths that reach each state at each frame.

    Args:
        emitted: Log-probability of each state's symbol, shape (S, B, L).
        states: Symbol of each state, shape (B, L).

    Returns:
        Log-probabilities, shape (S, B, L).
    """
    steps, rows, width = emitted.shape
    # Two states before the first, which nothing reaches: every state has one and two before it.
    reached = emitted.new_full((steps, rows, width + 2), -torch.inf)
    reached[0, :, 2 : 2 + FIRST_STATES] = emitted[0, :, :FIRST_STATES]
    skips = torch.zeros_like(states, dtype=torch.bool)
    skips[:, 2:] = (states[:, 2:] != BLANK) & (states[:, 2:] != states[:, :-2])
    never = emitted.new_full((), -torch.inf)
    for before, now, frame in zip(reached[:-1], reached[1:], emitted[1:], strict=True):
        stayed_or_next = torch.logaddexp(before[:, 2:], before[:, 1:-1])
        skipped = torch.where(skips, before[:, :-2], never)
        torch.add(torch.logaddexp(stayed_or_next, skipped), frame, out=now[:, 2:])
    return reached[..., 2:]


def likelihood(reached: Tensor, frames: Tensor, characters: Tensor) -> Tensor:
    """Sum the paths that end in the last character or the blank behind it.

    Args:
        reached: Forward variables, shape (B, S, L).
        frames: Frames of each utterance, shape (B,).
        characters: Characters of each transcript, shape (B,).

    Returns:
        Log-likelihoods (B,).
    """
    last_frame = (frames - 1).clamp_min(0).view(-1, 1, 1).expand(-1, 1, reached.shape[2])
    ends, last = reached.gather(1, last_frame).squeeze(1), 2 * characters.unsqueeze(1)
    character = ends.gather(1, (last - 1).clamp_min(0)).masked_fill(last == 0, -torch.inf)
    return torch.logaddexp(ends.gather(1, last), character).squeeze(1)
