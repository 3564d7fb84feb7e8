"""The live hypotheses of a beam search on their device, extended by one symbol at a time.

Dimensions: B sentences in the batch, B' sentences still searched, K beam size, V vocabulary, N candidates.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from pipeline.models.layers.positions import cached_indices
from pipeline.models.settings import BOS, EOS, PAD
from pipeline.search import interface

BLOCK = 64


@dataclass(frozen=True)
class Candidates:
    """Continuations of each sentence's hypotheses, best first; all of shape (B, N)."""

    log_probs: Tensor
    """Log-probability of the whole hypothesis; -inf if a sentence has fewer than N continuations."""
    parents: Tensor
    """Hypothesis that is continued, 0 … K - 1."""
    tokens: Tensor


@dataclass(frozen=True)
class HostCandidates:
    """Continuations of the hypotheses of B' sentences, copied to the host."""

    log_probs: np.ndarray
    """Float32, shape (B', 2K), best first."""
    parents: np.ndarray
    """Hypothesis that is continued, int64, shape (B', 2K)."""
    tokens: np.ndarray
    """Int64, shape (B', 2K)."""
    live: np.ndarray
    """Indices of the K best candidates that do not end the sentence, int64, shape (B', K)."""


class Beam(Protocol):
    """The live hypotheses of a batch."""

    def advance(self) -> HostCandidates:
        """Read the newest symbols, and find the 2K best continuations of each active sentence."""

    def keep(self, remaining: np.ndarray) -> None:
        """Continue with the live candidates of the sentences in the rows `remaining` of the last result."""


BeamStart = Callable[[Any, np.ndarray], Beam]
"""Starts the beam of a batch with its limits: the largest number of symbols of each output without EOS, shape (B,)."""


class EagerBeam:
    """Live hypotheses whose model runs operator by operator; rows of finished sentences are removed at once.

    Args:
        batch: Source sentences.
        limits: Largest number of symbols of each output without EOS, shape (B,).
        beam_size: K.
    """

    def __init__(self, scorer: interface.ModelScores, batch: interface.SourceBatch, limits: np.ndarray, beam_size: int):
        self.scorer, self.limits, self.beam_size, self.position = scorer, limits, beam_size, 0
        source, self.cache = scorer.start(batch)
        self.source = interface.tree_map(Tensor.contiguous, source)  # once, not in every matrix multiplication
        self.tokens = torch.full((len(limits), 1), BOS, device=batch.src_mask.device)
        self.log_probs = torch.zeros(self.tokens.shape, device=self.tokens.device)

    def advance(self) -> HostCandidates:
        """Extend the hypotheses by one symbol; see `Beam`."""
        scores, self.cache = self.scorer.step(self.tokens, self.source, self.cache)
        at_limit = np.flatnonzero(self.limits == self.position)
        candidates = expand(scores, self.log_probs, at_limit, self.beam_size)
        self.live, live_indices = live_candidates(candidates, self.beam_size)
        self.position += 1
        return unpack(pack(candidates, live_indices).cpu(), self.beam_size)

    def keep(self, remaining: np.ndarray) -> None:
        """Select the live candidates and their caches; see `Beam`."""
        (sentences, hypotheses), device = self.tokens.shape, self.tokens.device
        self.tokens, self.log_probs, parents = self.live.tokens, self.live.log_probs, self.live.parents
        if len(remaining) < sentences:
            rows = interface.to_device_async(device, remaining)
            self.source, self.limits = interface.select_sentences(self.source, rows), self.limits[remaining]
            self.tokens, self.log_probs, parents = self.tokens[rows], self.log_probs[rows], parents[rows]
        else:
            rows = torch.arange(sentences, device=device)
        if self.beam_size > 1 or len(remaining) < sentences:
            self.cache = interface.select_hypotheses(self.cache, rows.unsqueeze(1) * hypotheses + parents)


def expand(scores: Tensor, log_probs: Tensor, at_limit: np.ndarray, beam_size: int) -> Candidates:
    """Find the 2K best continuations of each sentence's hypotheses.

    Args:
        scores: Scores of the next symbol, shape (B', K, V); overwritten.
        log_probs: Log-probability of the hypotheses so far, shape (B', K).
        at_limit: Rows whose outputs have reached their limit, so that only EOS may follow.
        beam_size: K.

    Returns:
        Candidates, shape (B', 2K).
    """
    next_log_probs = scores.index_fill_(-1, cached_indices(scores.device, PAD, BOS), -torch.inf)
    if len(at_limit):
        rows = interface.to_device_async(scores.device, at_limit)
        final = next_log_probs[rows, :, EOS]
        next_log_probs[rows] = -torch.inf
        next_log_probs[rows, :, EOS] = final
    return best_continuations(next_log_probs, log_probs, 2 * beam_size)


def live_candidates(candidates: Candidates, beam_size: int) -> tuple[Candidates, Tensor]:
    """Select the K best candidates that do not end the sentence.

    Args:
        candidates: Shape (B', 2K), best first.
        beam_size: K.

    Returns:
        The candidates (B', K), and their indices among all candidates, shape (B', K).
    """
    open_log_probs = candidates.log_probs.masked_fill(candidates.tokens == EOS, -torch.inf)
    log_probs, index = open_log_probs.topk(beam_size, dim=1)
    return Candidates(log_probs, candidates.parents.gather(1, index), candidates.tokens.gather(1, index)), index


def pack(candidates: Candidates, live_indices: Tensor) -> Tensor:
    """Join candidates and the indices of the live ones, so that one transfer copies them.

    The integers are below 2^24, so float32 holds them exactly.

    Args:
        candidates: Shape (B', 2K).
        live_indices: Shape (B', K).

    Returns:
        Float32, shape (B', 7K).
    """
    integers = torch.cat((candidates.parents, candidates.tokens, live_indices), dim=1)
    return torch.cat((candidates.log_probs, integers.to(candidates.log_probs.dtype)), dim=1)


def unpack(packed: Tensor, beam_size: int) -> HostCandidates:
    """Split the result of `pack`.

    Args:
        packed: On the host, shape (B', 7K).
        beam_size: K.

    Returns:
        The candidates of B' sentences.
    """
    cuts = np.cumsum([2 * beam_size] * 3)
    log_probs, *integers = np.split(packed.numpy(), cuts, axis=1)
    return HostCandidates(log_probs, *(part.astype(np.int64) for part in integers))


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
