"""The best continuations of a beam.

B: sentences, K: hypotheses per sentence, V: vocabulary, N: candidates asked for.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

BLOCK = 64


@dataclass(frozen=True)
class Candidates:
    """Continuations of each sentence's hypotheses, best first; all (B, N)."""

    log_probs: Tensor
    """Of the whole hypothesis; -inf where a sentence has fewer than N continuations."""
    parents: Tensor
    """Which hypothesis, 0 … K-1, is continued."""
    tokens: Tensor


def best_continuations(next_log_probs: Tensor, log_probs: Tensor, count: int) -> Candidates:
    """The `count` most probable of the K * V continuations.

    next_log_probs: (B, K, V) of the next symbol, -inf where it is not allowed. log_probs: (B, K), of the hypotheses
    so far.
    """
    in_blocks = not next_log_probs.is_cuda and next_log_probs.shape[-1] // BLOCK > 2 * count
    found, parents, tokens = (best_in_blocks if in_blocks else best_of_each)(next_log_probs, log_probs, count)
    missing = (0, count - found.shape[1])
    return Candidates(pad(found, missing, value=-torch.inf), pad(parents, missing), pad(tokens, missing))


def best_of_each(next_log_probs: Tensor, log_probs: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The best of the best of every hypothesis: values, parents and tokens, (B, count) or fewer."""
    values, tokens = next_log_probs.topk(min(count, next_log_probs.shape[-1]), dim=-1)
    values = (values + log_probs.unsqueeze(-1)).flatten(1)
    found, index = values.topk(min(count, values.shape[1]), dim=1)
    return found, index // tokens.shape[-1], tokens.flatten(1).gather(1, index)


def best_in_blocks(next_log_probs: Tensor, log_probs: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The same, several times faster on a CPU when V is large.

    The `count` best lie in the `count` blocks of the largest maxima; the maxima are one vectorised pass, and only those
    blocks are searched, with what is left over at the end of the vocabulary.
    """
    hypotheses, vocabulary = next_log_probs.shape[1:]
    blocks = vocabulary // BLOCK
    maxima = next_log_probs[..., : blocks * BLOCK].unflatten(-1, (blocks, BLOCK)).amax(-1) + log_probs.unsqueeze(-1)
    chosen = maxima.flatten(1).topk(count, dim=1).indices
    first = chosen // blocks * vocabulary + chosen % blocks * BLOCK
    rest = torch.arange(hypotheses).unsqueeze(1) * vocabulary + torch.arange(blocks * BLOCK, vocabulary)
    places = torch.cat(
        [(first.unsqueeze(-1) + torch.arange(BLOCK)).flatten(1), rest.flatten().expand(len(first), -1)], dim=1
    )
    values = next_log_probs.flatten(1).gather(1, places) + log_probs.gather(1, places // vocabulary)
    found, index = values.topk(count, dim=1)
    places = places.gather(1, index)
    return found, places // vocabulary, places % vocabulary
