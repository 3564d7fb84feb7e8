"""Beam search over a batch of sentences (Attention Is All You Need, section 6.1; Wu et al. 2016, section 7).

Dimensions: B sentences in the batch, B' sentences still searched, K beam size, V vocabulary.

The beam always holds K live hypotheses. At each position the search takes the 2K best continuations, of which at least
K do not end the sentence. An EOS among the first K finishes a hypothesis; the K best others stay live. A sentence
leaves the batch when no live hypothesis can still reach the finished ones. It also leaves when it has K finished
hypotheses and no live one has a better score than the best of them. The count K alone would cut long outputs short: if
few symbols are likely, a wide beam has an EOS among its candidates at every position.

A beam of 1 is greedy search, and a beam that is wide enough is exhaustive search. A beam of 1 in tensor2tensor is
not greedy search, because an EOS may be among all 2K candidates there.
"""

from dataclasses import dataclass

import numpy as np
import torch

from pipeline.config import DecodingConfig
from pipeline.core.errors import UserError
from pipeline.models.seq2seq import Seq2Seq
from pipeline.models.settings import EOS
from pipeline.search.beam import BeamStart, EagerBeam, HostCandidates
from pipeline.search.interface import ExternalLM, SourceBatch, output_limits, scorer_of


@dataclass(frozen=True)
class Hypothesis:
    """A decoded output with its scores."""

    tokens: list[int]
    """Symbol ids without BOS and EOS."""
    log_prob: float
    """Natural logarithm, EOS included; the weighted log-probability of an external LM is added."""
    score: float
    """`log_prob` over the length penalty, by which the hypotheses of a sentence are ranked."""


@torch.no_grad()  # in inference_mode, autocast would cast every weight again at each position
def beam_search(
    model: Seq2Seq,
    batch: SourceBatch,
    config: DecodingConfig,
    n_best: int = 1,
    external_lm: ExternalLM | None = None,
    start: BeamStart | None = None,
) -> list[list[Hypothesis]]:
    """Decode a batch by beam search with length normalisation.

    An output has at most `config.max_extra_length` symbols more than its source, and no more than the model has
    positions for. The search of a sentence stops early as `Search.done` says.

    Args:
        model: In evaluation mode.
        batch: Source sentences.
        config: Beam size, length normalisation and length limit.
        n_best: Hypotheses per sentence.
        external_lm: Language model whose weighted log-probabilities are added to those of the model.
        start: Starts the beam of a batch for this model, beam size and language model; None starts an eager one.

    Returns:
        For each sentence its `n_best` hypotheses, best first; fewer if the search found fewer.

    Raises:
        UserError: The model's probabilities are NaN.
    """
    limits = output_limits(model, batch, config.max_extra_length).cpu().numpy()
    search = Search(limits, config, n_best)
    beam = start(batch, limits) if start else EagerBeam(scorer_of(model, external_lm), batch, limits, config.beam_size)
    for position in range(int(limits.max(initial=0)) + 1):
        remaining = search.record(beam.advance(), position)
        if not len(remaining):
            break
        beam.keep(remaining)
    return search.best()


class Search:
    """Live and finished hypotheses of a batch, stored on the host.

    Each position needs one small copy from the device. `active` holds the indices of the sentences still searched.
    `tokens` and `parents` hold, for each position, the live hypotheses of all sentences (B, K). A finished hypothesis
    is traced back through them at the end.

    Args:
        limits: Largest number of symbols of each output without EOS, shape (B,).
        config: Beam size and length normalisation.
        n_best: Hypotheses per sentence.
    """

    def __init__(self, limits: np.ndarray, config: DecodingConfig, n_best: int):
        self.limits, self.config, self.n_best = limits, config, n_best
        self.active = np.arange(len(limits))
        self.counts = np.zeros(len(limits), dtype=np.int64)
        self.best_scores = np.full((len(limits), n_best), -np.inf)
        """Scores of the best finished hypotheses, descending, filled up with -inf, shape (B, n_best)."""
        self.finished: list[list[tuple[float, float, int, int]]] = [[] for _ in limits]
        """For each sentence (score, log_prob, position of EOS, index of the continued hypothesis)."""
        self.tokens: list[np.ndarray] = []
        self.parents: list[np.ndarray] = []

    def penalty(self, length: int) -> float:
        """Return the length penalty of an output of `length` symbols, EOS included."""
        return length_penalty(length, self.config.length_penalty, self.config.length_normalisation)

    def record(self, candidates: HostCandidates, position: int) -> np.ndarray:
        """Record the candidates at a `position` and return the rows, among those active before, that stay active."""
        beam_size = self.config.beam_size
        log_probs, parents = candidates.log_probs, candidates.parents
        tokens, live = candidates.tokens, candidates.live
        ends = tokens == EOS
        if (ended := (ends & np.isfinite(log_probs))[:, :beam_size]).any():
            self.finish(ended, log_probs, parents, position)
        for history, new in ((self.tokens, tokens), (self.parents, parents)):
            history.append(np.zeros((len(self.limits), beam_size), dtype=np.int64))
            history[-1][self.active] = np.take_along_axis(new, live, 1)
        best = np.take_along_axis(np.where(ends, -np.inf, log_probs), live[:, :1], 1)
        remaining = np.flatnonzero(~self.done(best[:, 0]))
        self.active = self.active[remaining]
        return remaining

    def finish(self, ended: np.ndarray, log_probs: np.ndarray, parents: np.ndarray, position: int) -> None:
        """Add the candidates that end a sentence to the finished hypotheses.

        Args:
            ended: Shape (B', K), True at an EOS among the K best candidates.
            log_probs: Log-probability of every candidate, shape (B', 2K).
            parents: Hypothesis that every candidate continues, shape (B', 2K).
            position: Number of symbols before the candidates.
        """
        penalty = self.penalty(position + 1)
        for row, rank in zip(*ended.nonzero(), strict=True):
            sentence, log_prob = self.active[row], float(log_probs[row, rank])
            score = log_prob / penalty
            self.finished[sentence].append((score, log_prob, position, int(parents[row, rank])))
            self.counts[sentence] += 1
            scores = np.append(self.best_scores[sentence], score)
            self.best_scores[sentence] = np.sort(scores)[:0:-1]

    def done(self, live_log_probs: np.ndarray) -> np.ndarray:
        """Find the active sentences whose result can no longer change, or that have K finished hypotheses.

        Log-probabilities only fall and penalties only rise. At best, a live hypothesis keeps its log-probability and
        gets the penalty of the longest allowed output. The number K does not end a search while a live hypothesis has
        a better score than the best finished one. A longer search could still change its result.

        Args:
            live_log_probs: Best live log-probability of each active sentence, shape (B',).

        Returns:
            Mask (B',), True at these sentences.
        """
        reach = live_log_probs / np.array([self.penalty(limit + 1) for limit in self.limits[self.active]])
        settled = self.best_scores[self.active, -1] >= reach
        ahead = live_log_probs / self.penalty(len(self.tokens)) > self.best_scores[self.active, 0]
        full = (self.counts[self.active] >= self.config.beam_size) & ~ahead
        return settled | full | np.isneginf(live_log_probs)

    def best(self) -> list[list[Hypothesis]]:
        """Rank the finished hypotheses of each sentence.

        Returns:
            At most `n_best` for each sentence, best first.

        Raises:
            UserError: A sentence has none, because its log-probabilities are NaN.
        """
        if not all(self.finished):
            raise UserError("the model's probabilities are NaN because its training diverged; train it again")
        ranked = [sorted(found, key=lambda scored: -scored[0])[: self.n_best] for found in self.finished]
        return [
            [
                Hypothesis(self.trace_back(sentence, position, slot), log_prob, score)
                for score, log_prob, position, slot in found
            ]
            for sentence, found in enumerate(ranked)
        ]

    def trace_back(self, sentence: int, position: int, slot: int) -> list[int]:
        """Return the symbols of a hypothesis.

        Args:
            sentence: Index of the sentence in the batch.
            position: Number of symbols to trace back.
            slot: Index of the hypothesis in the beam at this position, 0 … K - 1.

        Returns:
            Symbol ids, first symbol first.
        """
        symbols = []
        for earlier in range(position - 1, -1, -1):
            symbols.append(int(self.tokens[earlier][sentence, slot]))
            slot = self.parents[earlier][sentence, slot]
        return symbols[::-1]


def length_penalty(length: int, alpha: float, normalisation: str) -> float:
    """Return the divisor of a hypothesis' log-probability, which never falls with its length.

    gnmt: ((5 + |Y|) / 6) ** alpha (Wu et al. 2016, eq. 14; Attention Is All You Need, section 6.1: alpha = 0.6).
    length: |Y| ** alpha, as in fairseq; with alpha = 1 the score is the log-probability per symbol. none: 1.

    Args:
        length: |Y|, symbols of the hypothesis with EOS.
        alpha: Exponent, at least 0.
        normalisation: gnmt, length or none.

    Returns:
        At least 1 for |Y| of 1 and more.

    Raises:
        ValueError: The normalisation is unknown.
    """
    match normalisation:
        case "gnmt":
            return ((5 + length) / 6) ** alpha
        case "length":
            return float(length**alpha)
        case "none":
            return 1.0
    raise ValueError(f"length_normalisation must be gnmt, length or none, got {normalisation!r}")
