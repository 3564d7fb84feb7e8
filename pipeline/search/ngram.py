"""An n-gram of symbols, counted, with interpolated Witten-Bell smoothing (Witten and Bell 1991, method C).

    p(w | h) = (c(h w) + T(h) p(w | h')) / (c(h) + T(h))

T(h): distinct symbols seen after h; h': h without its oldest symbol; below the unigram all symbols are equally likely.
It has the steps of a neural language model, so that searches and fusions of logits take either.
"""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor, nn

from pipeline.core.symbols import BOS, EOS, PAD, UNK

NEVER = 1e-30
"""Stands for the probability of what is never written, so that no weight times it is no number."""


class Ngram(nn.Module):
    """order: at least 2; vocab: V symbols; sentences: ids without BOS and EOS. It has no weights."""

    none_read: Tensor

    def __init__(self, order: int, vocab: int, sentences: Iterable[np.ndarray]):
        super().__init__()
        self.register_buffer("none_read", torch.full((1, 1, order - 1), BOS), persistent=False)
        self.order, self.vocab = order, vocab
        self.counts: dict[tuple[int, ...], np.ndarray] = defaultdict(lambda: np.zeros(vocab, np.int64))
        self.known: dict[tuple[int, ...], Tensor] = {}
        for sentence in sentences:
            symbols = [BOS] * (order - 1) + [int(one) for one in sentence] + [EOS]
            for place in range(order - 1, len(symbols)):
                for length in range(order):
                    self.counts[tuple(symbols[place - length : place])][symbols[place]] += 1

    def log_probs(self, context: tuple[int, ...]) -> Tensor:
        """(V,) after the last symbols of a text, the oldest first."""
        if context not in self.known:
            probs = np.ones(self.vocab)
            probs[[PAD, UNK, BOS]] = 0.0
            probs /= probs.sum()
            for length in range(len(context) + 1):
                seen = self.counts.get(context[len(context) - length :])
                if seen is not None:
                    kinds = np.count_nonzero(seen)
                    probs = (seen + kinds * probs) / (seen.sum() + kinds)
            self.known[context] = torch.from_numpy(np.log(np.maximum(probs, NEVER))).float()
        return self.known[context]

    def begin(self, sentences: int) -> Tensor:
        """(B, K = 1, order - 1): nothing is read."""
        return self.none_read.expand(sentences, -1, -1)

    def advance(self, prev_tokens: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        """prev_tokens (B, K), cache (B, K, order - 1) -> the symbols to predict from, twice."""
        read = torch.cat((cache[..., 1:], prev_tokens.unsqueeze(-1)), dim=-1)
        return read, read

    def logits(self, states: Tensor) -> Tensor:
        """(…, order - 1) -> log-probabilities (…, V)"""
        rows = [self.log_probs(tuple(row)) for row in states.flatten(0, -2).tolist()]
        return torch.stack(rows).unflatten(0, states.shape[:-1]).to(states.device)
