"""Beam search over a batch of sentences (Attention Is All You Need, section 6.1; Wu et al. 2016, section 7).

B: sentences in the batch, K: beam size, V: vocabulary.

The beam always holds K live hypotheses. At each position the 2K best continuations are taken (at least K of them don't
end the sentence); an EOS among the first K finishes a hypothesis, the K best others live on. A sentence is done, and
leaves the batch, when no live one can still reach the finished ones, or when it has K finished ones and no live one is
ahead of the best of them: K alone would cut long outputs short, as among few likely symbols a wide beam holds an EOS at
every position. Thus a beam of 1 is greedy search, and a beam wide enough is exhaustive search. (tensor2tensor takes an
EOS from all 2K; then a beam of 1 is not greedy search.)
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pipeline.config import DecodingConfig
from pipeline.core.errors import UserError
from pipeline.core.symbols import BOS, EOS, PAD
from pipeline.models.layers.reading import numbers_on
from pipeline.models.seq2seq import Seq2Seq
from pipeline.search.interface import SourceBatch, output_limits, rows_on, select_hypotheses, select_sentences, tree_map
from pipeline.search.scorers import ModelScores, Prior, ShallowFusion
from pipeline.search.selection import Candidates, best_continuations


@dataclass(frozen=True)
class Hypothesis:
    tokens: list[int]
    """Without BOS and EOS."""
    log_prob: float
    """Natural logarithm, EOS included; a prior's, weighted, is added."""
    score: float
    """`log_prob` over the length penalty: what hypotheses of a sentence are ranked by."""


@torch.no_grad()  # not inference_mode, in which autocast would cast every weight anew at each position
def beam_search(
    model: Seq2Seq, batch: SourceBatch, config: DecodingConfig, n_best: int = 1, prior: Prior | None = None
) -> list[list[Hypothesis]]:
    """The `n_best` hypotheses of each sentence (fewer if there are fewer), best first.

    An output has at most `config.max_extra_length` symbols more than its source, neither counting EOS, and no more than
    the model has positions for. A search stops when the first `n_best` are settled: they are the same as without this
    early stop. With a `prior`, what is ranked is the sum of both log-probabilities, weighted.

    Raises:
        UserError: the model gives probabilities that are not numbers.
    """
    search = Search(output_limits(model, batch, config.max_extra_length).cpu().numpy(), config, n_best)
    scorer = ShallowFusion(model, prior) if prior else ModelScores(model)
    source, cache = scorer.start(batch)
    source = tree_map(Tensor.contiguous, source)  # once, and not in the products of every position
    device = batch.src_mask.device
    tokens = torch.full((len(search.limits), 1), BOS, device=device)
    log_probs = torch.zeros(tokens.shape, device=device)
    for position in range(int(search.limits.max(initial=0)) + 1):
        scores, cache = scorer.step(tokens, source, cache)
        candidates = expand(scores, log_probs, search.at_limit(position), config.beam_size)
        live, places = survivors(candidates, config.beam_size)
        left = search.record(candidates, places, position)
        if not len(left):
            break
        tokens, log_probs, parents = live.tokens, live.log_probs, live.parents
        if len(left) < len(tokens):
            rows = rows_on(device, left)
            source = select_sentences(source, rows)
            tokens, log_probs, parents = tokens[rows], log_probs[rows], parents[rows]
        else:
            rows = torch.arange(len(tokens), device=device)
        if config.beam_size > 1 or len(left) < len(scores):
            cache = select_hypotheses(cache, rows.unsqueeze(1) * scores.shape[1] + parents)
    return search.best()


def expand(scores: Tensor, log_probs: Tensor, at_limit: np.ndarray, beam_size: int) -> Candidates:
    """The 2K best continuations; of the sentences `at_limit` only those by EOS. scores (B, K, V)"""
    next_log_probs = scores.index_fill_(-1, numbers_on(scores.device, PAD, BOS), -torch.inf)
    if len(at_limit):
        rows = rows_on(scores.device, at_limit)
        final = next_log_probs[rows, :, EOS]
        next_log_probs[rows] = -torch.inf
        next_log_probs[rows, :, EOS] = final
    return best_continuations(next_log_probs, log_probs, 2 * beam_size)


def survivors(candidates: Candidates, beam_size: int) -> tuple[Candidates, Tensor]:
    """The K best candidates that don't end the sentence, and their places among the candidates (B, K)."""
    open_log_probs = candidates.log_probs.masked_fill(candidates.tokens == EOS, -torch.inf)
    log_probs, index = open_log_probs.topk(beam_size, dim=1)
    return Candidates(log_probs, candidates.parents.gather(1, index), candidates.tokens.gather(1, index)), index


def on_host(numbers: Tensor, *whole: Tensor) -> tuple[np.ndarray, list[np.ndarray]]:
    """Tensors (B, …) by one copy; `whole` are whole numbers below 2^24, which float32 has, too."""
    read = torch.cat((numbers, torch.cat(whole, dim=1).to(numbers.dtype)), dim=1).cpu().numpy()
    first, *others = np.split(read, np.cumsum([numbers.shape[1], *(one.shape[1] for one in whole[:-1])]), axis=1)
    return first, [one.astype(np.int64) for one in others]


class Search:
    """What has been found so far, kept on the host: one small copy from the device at each position.

    The sentences still searched are `active` (their numbers in the batch); `tokens` and `parents` [position] hold the
    live hypotheses of all sentences (B, K), from which a finished one is read backwards at the end.
    """

    def __init__(self, limits: np.ndarray, config: DecodingConfig, n_best: int):
        """limits: (B,), the most symbols of each output, EOS not counted."""
        self.limits, self.config, self.n_best = limits, config, n_best
        self.active = np.arange(len(limits))
        self.counts = np.zeros(len(limits), dtype=np.int64)
        self.best_scores = np.full((len(limits), n_best), -np.inf)
        """(B, n_best) of the finished hypotheses, descending; -inf where there are fewer."""
        self.finished: list[list[tuple[float, float, int, int]]] = [[] for _ in limits]
        """(score, log_prob, position of EOS, hypothesis it continues), for each sentence."""
        self.tokens: list[np.ndarray] = []
        self.parents: list[np.ndarray] = []

    def penalty(self, length: int) -> float:
        return length_penalty(length, self.config.length_penalty, self.config.length_normalisation)

    def at_limit(self, position: int) -> np.ndarray:
        """Rows among the active whose outputs have to end now."""
        return np.flatnonzero(self.limits[self.active] == position)

    def record(self, candidates: Candidates, places: Tensor, position: int) -> np.ndarray:
        """Keep what `position` (from 0) brought; the rows that go on, as indices into the active so far.

        places (B', K): those of the candidates that live on.
        """
        beam_size = self.config.beam_size
        log_probs, (parents, tokens, live) = on_host(
            candidates.log_probs, candidates.parents, candidates.tokens, places
        )
        ends = tokens == EOS
        if (ended := (ends & np.isfinite(log_probs))[:, :beam_size]).any():
            self.finish(ended, log_probs, parents, position)
        for history, new in ((self.tokens, tokens), (self.parents, parents)):
            history.append(np.zeros((len(self.limits), beam_size), dtype=np.int64))
            history[-1][self.active] = np.take_along_axis(new, live, 1)
        best = np.take_along_axis(np.where(ends, -np.inf, log_probs), live[:, :1], 1)
        going_on = np.flatnonzero(~self.done(best[:, 0]))
        self.active = self.active[going_on]
        return going_on

    def finish(self, ended: np.ndarray, log_probs: np.ndarray, parents: np.ndarray, position: int) -> None:
        """Add the candidates marked in `ended` (B', K) to the finished hypotheses."""
        penalty = self.penalty(position + 1)
        for row, rank in zip(*ended.nonzero(), strict=True):
            sentence, log_prob = self.active[row], float(log_probs[row, rank])
            score = log_prob / penalty
            self.finished[sentence].append((score, log_prob, position, int(parents[row, rank])))
            self.counts[sentence] += 1
            scores = np.append(self.best_scores[sentence], score)
            self.best_scores[sentence] = np.sort(scores)[:0:-1]

    def done(self, live_log_probs: np.ndarray) -> np.ndarray:
        """(B',) bool, given the best live log-probability of each active sentence.

        Log-probabilities only fall and penalties only rise, so a live hypothesis can at best keep its log-probability
        and pay the penalty of the longest output allowed.
        """
        reach = live_log_probs / np.array([self.penalty(limit + 1) for limit in self.limits[self.active]])
        settled = self.best_scores[self.active, -1] >= reach
        ahead = live_log_probs / self.penalty(len(self.tokens)) > self.best_scores[self.active, 0]
        full = (self.counts[self.active] >= self.config.beam_size) & ~ahead
        return settled | full | np.isneginf(live_log_probs)

    def best(self) -> list[list[Hypothesis]]:
        """The finished hypotheses of each sentence, best first. Raises UserError when a sentence has none."""
        if not all(self.finished):
            raise UserError("the model's probabilities are not numbers: its training diverged; train it again")
        ranked = [sorted(found, key=lambda one: -one[0])[: self.n_best] for found in self.finished]
        return [
            [
                Hypothesis(self.read_back(sentence, position, slot), log_prob, score)
                for score, log_prob, position, slot in found
            ]
            for sentence, found in enumerate(ranked)
        ]

    def read_back(self, sentence: int, position: int, slot: int) -> list[int]:
        """The symbols before `position` of the hypothesis that was then in `slot`."""
        symbols = []
        for earlier in range(position - 1, -1, -1):
            symbols.append(int(self.tokens[earlier][sentence, slot]))
            slot = self.parents[earlier][sentence, slot]
        return symbols[::-1]


def length_penalty(length: int, alpha: float, normalisation: str) -> float:
    """Divisor of the log-probability of a hypothesis of `length` symbols, EOS counted. Never falls with `length`.

    gnmt: ((5 + |Y|) / 6) ** alpha (Wu et al. 2016, eq. 14; Attention Is All You Need, section 6.1: alpha = 0.6).
    length: |Y| ** alpha, as fairseq has it; 1 ranks by the log-probability a symbol. none: 1.
    """
    match normalisation:
        case "gnmt":
            return ((5 + length) / 6) ** alpha
        case "length":
            return float(length**alpha)
        case "none":
            return 1.0
    raise ValueError(f"length_normalisation must be gnmt, length or none, got {normalisation!r}")
