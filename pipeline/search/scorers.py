"""Scores that a beam search adds up: log-probabilities of the model, alone or with an external language model.

Dimensions: B sentences, K hypotheses per sentence, V vocabulary.
"""

from dataclasses import dataclass

from torch import Tensor

from pipeline.models.language_model.model import LanguageModel
from pipeline.models.seq2seq import Seq2Seq, Tree
from pipeline.search.interface import SourceBatch
from pipeline.search.ngram import Ngram


class ModelScores:
    """log p(y_t | y_<t, x)."""

    def __init__(self, model: Seq2Seq):
        self.model = model

    def start(self, batch: SourceBatch) -> tuple[Tree, Tree]:
        """Encode a batch; see `Seq2Seq.start`."""
        return self.model.start(batch)

    def step(self, prev_tokens: Tensor, source: Tree, cache: Tree) -> tuple[Tensor, Tree]:
        """Score the symbols after `prev_tokens` (B, K).

        Returns:
            Scores (B, K, V) and the grown cache.
        """
        logits, cache = self.model.step(prev_tokens, source, cache)
        return logits.log_softmax(-1), cache


@dataclass(frozen=True)
class ExternalLM:
    """An external language model and its weight."""

    model: LanguageModel | Ngram
    weight: float
    """λ >= 0: scores then never rise with length, which the early stop of the search requires."""


class ShallowFusion(ModelScores):
    """log p(y_t | y_<t, x) + λ log p_LM(y_t | y_<t) (Cold Fusion, eq. 2)."""

    def __init__(self, model: Seq2Seq, external_lm: ExternalLM):
        super().__init__(model)
        self.external_lm = external_lm

    def start(self, batch: SourceBatch) -> tuple[Tree, Tree]:
        """Encode a batch; see `Seq2Seq.start`."""
        source, cache = self.model.start(batch)
        return source, {"model": cache, "lm": self.external_lm.model.initial_cache(len(batch.src_mask))}

    def step(self, prev_tokens: Tensor, source: Tree, cache: Tree) -> tuple[Tensor, Tree]:
        """Score the symbols after `prev_tokens`; see `ModelScores.step`."""
        scores, model_cache = super().step(prev_tokens, source, cache["model"])
        states, lm_cache = self.external_lm.model.advance(prev_tokens, cache["lm"])
        scores = scores + self.external_lm.weight * self.external_lm.model.logits(states).log_softmax(-1)
        return scores, {"model": model_cache, "lm": lm_cache}
