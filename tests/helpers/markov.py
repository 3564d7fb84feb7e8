"""A model small enough to search exhaustively: a random second-order Markov table per sentence."""

from dataclasses import dataclass

import torch
from torch import Tensor

from pipeline.models.settings import BOS, EOS, PAD


@dataclass(frozen=True)
class Sentences:
    """`numbers` (B,) choose each sentence's table; `lengths` are source lengths without EOS."""

    numbers: Tensor
    lengths: Tensor

    @property
    def src_mask(self) -> Tensor:
        return torch.arange(int(self.lengths.max()) + 1) <= self.lengths.unsqueeze(1)

    @property
    def expected_length(self) -> Tensor:
        return self.lengths

    def pick(self, rows: list[int]) -> "Sentences":
        return Sentences(self.numbers[rows], self.lengths[rows])


def sentences(lengths: list[int]) -> Sentences:
    """Return sentences of these lengths, each with its own table."""
    return Sentences(torch.arange(len(lengths)), torch.tensor(lengths))


class Markov:
    """Logits of the next symbol depend on the sentence and on the two symbols before, the older from the cache."""

    def __init__(
        self, vocabulary: int, sentences: int, seed: int, spread: float = 2.0, max_positions: int | None = None
    ):
        self.max_positions = max_positions
        generator = torch.Generator().manual_seed(seed)
        shape = (sentences, vocabulary, vocabulary, vocabulary)
        self.tables = torch.randn(shape, generator=generator) * spread
        self.steps = 0
        self.rows = 0

    def start(self, batch: Sentences):
        return [self.tables[batch.numbers]], {"older": torch.full((len(batch.numbers), 1), BOS)}

    def step(self, prev_tokens, source, cache):
        self.steps += 1
        self.rows += len(prev_tokens)
        sentence = torch.arange(len(prev_tokens)).unsqueeze(1)
        return source[0][sentence, cache["older"], prev_tokens], {"older": prev_tokens}

    def greedy(self, sentence: int, limit: int) -> list[int]:
        """Return the most probable symbol at each position, without EOS, at most `limit`."""
        symbols = [BOS, BOS]
        while len(symbols) < limit + 2:
            logits = self.tables[sentence, symbols[-2], symbols[-1]].index_fill(0, torch.tensor([PAD, BOS]), -torch.inf)
            if (symbol := int(logits.argmax())) == EOS:
                break
            symbols.append(symbol)
        return symbols[2:]

    def log_prob(self, sentence: int, symbols: list[int]) -> float:
        """Return the log-probability of `symbols`, EOS included, one by one."""
        older, newer, total = BOS, BOS, 0.0
        for symbol in symbols:
            total += float(self.tables[sentence, older, newer].double().log_softmax(-1)[symbol])
            older, newer = newer, symbol
        return total
