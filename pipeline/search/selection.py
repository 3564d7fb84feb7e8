"""Selection of the best continuations of a beam.

Dimensions: B sentences, K hypotheses per sentence, V vocabulary, N candidates.
"""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import pad

BLOCK = 64


@dataclass(frozen=True)
class Candidates:
    """Continuations of each sentence's hypotheses, best first; all of shape (B, N)."""

    log_probs: Tensor
    """Log-probability of the whole hypothesis; -inf if a sentence has fewer than N continuations."""
    parents: Tensor
    """Hypothesis that is continued, 0 … K - 1."""
    tokens: Tensor


def best_continuations(next_log_probs: Tensor, log_probs: Tensor, count: int) -> Candidates:
    """Find the most probable of the K * V continuations of each sentence.

    Args:
        next_log_probs: Log-probability of the next symbol, -inf if it is not allowed, shape (B, K, V).
        log_probs: Log-probability of the hypotheses so far, shape (B, K).
        count: N.

    Returns:
        Candidates, shape (B, N).
    """
    in_blocks = next_log_probs.shape[-1] // BLOCK > 2 * count
    found, parents, tokens = (best_in_blocks if in_blocks else best_of_each)(next_log_probs, log_probs, count)
    missing = (0, count - found.shape[1])
    return Candidates(pad(found, missing, value=-torch.inf), pad(parents, missing), pad(tokens, missing))


def best_of_each(next_log_probs: Tensor, log_probs: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Select the best among the best of every hypothesis.

    Args:
        next_log_probs: Log-probability of the next symbol, shape (B, K, V).
        log_probs: Log-probability of the hypotheses so far, shape (B, K).
        count: N.

    Returns:
        Log-probabilities, parents and tokens, each of shape (B, N), or fewer columns if K * V is less.
    """
    values, tokens = next_log_probs.topk(min(count, next_log_probs.shape[-1]), dim=-1)
    values = (values + log_probs.unsqueeze(-1)).flatten(1)
    found, index = values.topk(min(count, values.shape[1]), dim=1)
    return found, index // tokens.shape[-1], tokens.flatten(1).gather(1, index)


def best_in_blocks(next_log_probs: Tensor, log_probs: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Select as `best_of_each`, several times faster if V is large.

    The N best are in the N blocks with the largest maxima. The maxima take one vectorised pass. Only those blocks are
    searched, and the rest of the vocabulary behind the last block.

    Args:
        next_log_probs: Log-probability of the next symbol, shape (B, K, V).
        log_probs: Log-probability of the hypotheses so far, shape (B, K).
        count: N.

    Returns:
        Log-probabilities, parents and tokens, each of shape (B, N).
    """
    hypotheses, vocabulary = next_log_probs.shape[1:]
    blocks = vocabulary // BLOCK
    maxima = next_log_probs[..., : blocks * BLOCK].unflatten(-1, (blocks, BLOCK)).amax(-1) + log_probs.unsqueeze(-1)
    chosen = maxima.flatten(1).topk(count, dim=1).indices
    first = chosen // blocks * vocabulary + chosen % blocks * BLOCK
    arange = partial(torch.arange, device=next_log_probs.device)
    rest = arange(hypotheses).unsqueeze(1) * vocabulary + arange(blocks * BLOCK, vocabulary)
    places = torch.cat([(first.unsqueeze(-1) + arange(BLOCK)).flatten(1), rest.flatten().expand(len(first), -1)], dim=1)
    values = next_log_probs.flatten(1).gather(1, places) + log_probs.gather(1, places // vocabulary)
    found, index = values.topk(count, dim=1)
    places = places.gather(1, index)
    return found, places // vocabulary, places % vocabulary
