"""An n-gram model of symbols with interpolated Witten-Bell smoothing (Witten and Bell 1991, method C).

    p(w | h) = (c(h w) + T(h) p(w | h')) / (c(h) + T(h))

T(h) is the number of distinct symbols seen after h, and h' is h without its oldest symbol. Below the unigram all
symbols are equally likely. The interface is that of a neural language model, so searches and fusions of logits take
either.

Dimensions: B sentences, K hypotheses per sentence, V vocabulary.
"""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor, nn

from pipeline.core.symbols import BOS, EOS, PAD, UNK

NEVER = 1e-6
"""Probability given to PAD, UNK and BOS, which no text has.

A fusion of logits reads its logarithm as a feature, so it has to be about as low as a neural language model's.
"""


class Ngram(nn.Module):
    """Counts of n-grams, without trainable weights.

    Args:
        order: n, at least 2.
        vocab: V.
        sentences: Symbol ids without BOS and EOS.
    """

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
        """Return log-probabilities of the next symbol.

        Args:
            context: Last symbols of a text, oldest first, at most n - 1.

        Returns:
            Shape (V,).
        """
        if context not in self.known:
            probs = np.ones(self.vocab)
            probs[[PAD, UNK, BOS]] = 0.0
            probs /= probs.sum()
            for length in range(len(context) + 1):
                seen = self.counts.get(context[len(context) - length :])
                if seen is not None:
                    kinds = np.count_nonzero(seen)
                    probs = (seen + kinds * probs) / (seen.sum() + kinds)
            probs[[PAD, UNK, BOS]] = NEVER
            self.known[context] = torch.from_numpy(np.log(probs)).float()
        return self.known[context]

    def initial_cache(self, sentences: int) -> Tensor:
        """Return the cache of hypotheses that have read nothing.

        Args:
            sentences: B.

        Returns:
            Shape (B, 1, n - 1), filled with BOS.
        """
        return self.none_read.expand(sentences, -1, -1)

    def advance(self, prev_tokens: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        """Append one symbol to the cache.

        Args:
            prev_tokens: Newest symbol of each hypothesis, shape (B, K).
            cache: Last symbols of each hypothesis, oldest first, shape (B, K, n - 1).

        Returns:
            The cache with the symbol, once as state and once as cache, shape (B, K, n - 1).
        """
        grown = torch.cat((cache[..., 1:], prev_tokens.unsqueeze(-1)), dim=-1)
        return grown, grown

    def logits(self, states: Tensor) -> Tensor:
        """Score the next symbol.

        Args:
            states: Last symbols of each text, oldest first, shape (…, n - 1).

        Returns:
            Log-probabilities, shape (…, V).
        """
        rows = [self.log_probs(tuple(row)) for row in states.flatten(0, -2).tolist()]
        return torch.stack(rows).unflatten(0, states.shape[:-1]).to(states.device)
