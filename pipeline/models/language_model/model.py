"""Language models: a GRU, frozen when it is fused with another model (Cold Fusion, Table 2), and counts of n-grams.

Dimensions: B sentences, K hypotheses, T symbols, L layers, H hidden units, V vocabulary.
"""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.models.kernels.loops import run_gru, run_recurrent
from pipeline.models.language_model.settings import LanguageModelConfig
from pipeline.models.layers.loss import projected_loss
from pipeline.models.seq2seq import LossSums, Seq2Seq, Tree
from pipeline.models.settings import BOS, EOS, PAD, UNK


class LanguageModel(Seq2Seq):
    """Language model p(y_t | y_<t) = softmax(W h_t + b).

    h_t is the top state of a GRU that has read BOS, y_1, …, y_{t-1}. The interface is that of a sequence-to-sequence
    model without a source.
    """

    def __init__(self, config: LanguageModelConfig, vocab: int):
        super().__init__()
        self.config, self.state_width = config, config.hidden_width
        self.embedding = nn.Embedding(vocab, config.embedding_width)
        self.gru = nn.GRU(config.embedding_width, config.hidden_width, config.num_layers, batch_first=True)
        self.output = nn.Linear(config.hidden_width, vocab)

    def hidden_states(self, tgt_in: Tensor) -> Tensor:
        """Return states (B, T, H) that predict the symbol after each input of `tgt_in` (B, T), BOS first.

        Dropout between layers is not that of `nn.GRU`. On a GPU it is cuDNN's, which keeps random numbers in memory of
        its own. A CUDA graph would read this memory after it is freed, and would not draw by the seed of its step.
        """
        x, dropout = self.embedding(tgt_in), self.config.dropout if self.training else 0.0
        if not dropout:
            return run_recurrent(self.gru, x)[0]
        for number, weights in enumerate(self.gru.all_weights):
            x = run_gru(F.dropout(x, dropout) if number else x, weights, training=True)
        return x

    def loss(self, batch, label_smoothing: float) -> LossSums:
        features = F.dropout(self.hidden_states(batch.tgt_in), self.config.dropout, self.training)
        return projected_loss(features, self.output.weight, self.output.bias, batch, label_smoothing)

    def initial_cache(self, sentences: int) -> Tree:
        """Return the cache (B, K = 1, L, H) of hypotheses that have read nothing."""
        weight = self.output.weight
        return weight.new_zeros(sentences, 1, self.config.num_layers, self.config.hidden_width)

    def start(self, batch) -> tuple[Tree, Tree]:
        return None, self.initial_cache(len(batch.tgt_in))

    def advance(self, prev_tokens: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        """Read one symbol per hypothesis.

        Args:
            prev_tokens: Newest symbol of each hypothesis, shape (B, K).
            cache: States of all layers before it, shape (B, K, L, H).

        Returns:
            Top states (B, K, H), and the states of all layers after it (B, K, L, H).
        """
        shape = prev_tokens.shape
        hidden = cache.flatten(0, 1).transpose(0, 1).contiguous()
        states, hidden = run_recurrent(self.gru, self.embedding(prev_tokens.reshape(-1, 1)), hidden)
        return states.view(*shape, -1), hidden.transpose(0, 1).unflatten(0, shape)

    def logits(self, states: Tensor) -> Tensor:
        """Return float32 logits (…, V) from the top `states` (…, H) of the GRU."""
        return self.output(states).float()

    def step(self, prev_tokens: Tensor, source: Tree, cache: Tensor) -> tuple[Tensor, Tensor]:
        states, cache = self.advance(prev_tokens, cache)
        return self.logits(states), cache


NEVER = 1e-6
"""Probability given to PAD, UNK and BOS, which no text has.

A fusion of logits reads its logarithm as a feature, so it has to be about as low as a neural language model's.
"""


class Ngram(nn.Module):
    """N-gram model of symbols with interpolated Witten-Bell smoothing (Witten and Bell 1991, method C).

        p(w | h) = (c(h w) + T(h) p(w | h')) / (c(h) + T(h))

    T(h) is the number of distinct symbols seen after h, and h' is h without its oldest symbol. Below the unigram all
    symbols are equally likely. There are no trainable weights.

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
            symbols = [BOS] * (order - 1) + [int(symbol) for symbol in sentence] + [EOS]
            for place in range(order - 1, len(symbols)):
                for length in range(order):
                    self.counts[tuple(symbols[place - length : place])][symbols[place]] += 1

    def log_probs(self, context: tuple[int, ...]) -> Tensor:
        """Return log-probabilities (V,) of the symbol after `context`, at most n - 1 symbols, oldest first."""
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
        """Return the cache (B, 1, n - 1) of B `sentences` that have read nothing, filled with BOS."""
        return self.none_read.expand(sentences, -1, -1)

    def advance(self, prev_tokens: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        """Return the cache with one more symbol, once as state and once as cache, shape (B, K, n - 1).

        Args:
            prev_tokens: Newest symbol of each hypothesis, shape (B, K).
            cache: Last symbols of each hypothesis, oldest first, shape (B, K, n - 1).
        """
        grown = torch.cat((cache[..., 1:], prev_tokens.unsqueeze(-1)), dim=-1)
        return grown, grown

    def logits(self, states: Tensor) -> Tensor:
        """Return log-probabilities (…, V) of the symbol after the last n - 1 symbols, `states` (…, n - 1)."""
        rows = [self.log_probs(tuple(row)) for row in states.flatten(0, -2).tolist()]
        return torch.stack(rows).unflatten(0, states.shape[:-1]).to(states.device)


def build(config: LanguageModelConfig, vocab_sizes: tuple[int, int]) -> LanguageModel:
    """Return a model with random weights; see `build_model`. Only the target vocabulary is used."""
    return LanguageModel(config, vocab_sizes[1])
