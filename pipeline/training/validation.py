"""Measurements on the development set between updates: perplexity, and three translations to look at."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import torch

from pipeline.data.batches import EvaluationBatches, ParallelSplit
from pipeline.data.vocabulary import load_vocabularies
from pipeline.decoding.greedy import greedy
from pipeline.training.distributed import Group
from pipeline.training.state import perplexity

MAX_EXTRA_LENGTH = 50  # Attention Is All You Need, section 6.1


class Validation:
    """Reads split `dev` of an encoded corpus; the subword model lies beside its folder.

    Args:
        batch_tokens: source subwords held at once.
        precision: opens the autocast of the training.
    """

    def __init__(
        self,
        corpus_folder: Path,
        batch_tokens: int,
        device: torch.device,
        group: Group,
        precision: Callable[[], AbstractContextManager],
    ):
        self.batches = EvaluationBatches(corpus_folder, "dev", batch_tokens)
        self.pairs = ParallelSplit(corpus_folder, "dev")
        self.src_subwords, self.tgt_subwords = load_vocabularies(Path(corpus_folder).parent)
        self.vocab_size = len(self.tgt_subwords)
        self.device, self.group, self.precision = device, group, precision

    @torch.no_grad()
    def measure(self, model: torch.nn.Module) -> dict[str, float]:
        """Negative log-likelihood in nats a subword, EOS included, without smoothing; its perplexity; the subwords."""
        model.eval()
        nll = torch.zeros((), dtype=torch.float64, device=self.device)
        tokens = 0
        for number, (_, batch) in enumerate(self.batches):
            if number % self.group.size == self.group.rank:
                with self.precision():
                    sums = model.loss(batch.to(self.device), 0.0)
                nll += sums.nll
                tokens += sums.tokens
        model.train()
        nll_sum, tokens = self.group.total([float(nll), tokens], self.device)
        mean = nll_sum / tokens
        return {"nll_per_token": mean, "perplexity": perplexity(mean), "tokens": int(tokens)}

    def samples(self, model: torch.nn.Module) -> list[dict[str, str]]:
        """Source, reference and greedy hypothesis of three fixed sentences, tokenised text."""
        chosen = np.unique([0, len(self.pairs.src) // 2, len(self.pairs.src) - 1])
        model.eval()
        with self.precision():
            outputs = greedy(model, self.pairs.batch(chosen).to(self.device), MAX_EXTRA_LENGTH)
        model.train()
        texts = (
            self.src_subwords.decode([self.pairs.src[i] for i in chosen]),
            self.tgt_subwords.decode([self.pairs.tgt[i] for i in chosen]),
            self.tgt_subwords.decode(outputs),
        )
        return [
            {"source": source, "reference": reference, "hypothesis": hypothesis}
            for source, reference, hypothesis in zip(*texts, strict=True)
        ]
