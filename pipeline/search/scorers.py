"""What a beam search adds up: log-probabilities of the model alone, or of a language model beside it.

B: sentences, K: hypotheses per sentence, V: vocabulary.
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
        return self.model.start(batch)

    def step(self, prev_tokens: Tensor, source: Tree, cache: Tree) -> tuple[Tensor, Tree]:
        """Scores (B, K, V) of the next symbols after `prev_tokens` (B, K), and the cache."""
        logits, cache = self.model.step(prev_tokens, source, cache)
        return logits.log_softmax(-1), cache


@dataclass(frozen=True)
class Prior:
    """A language model and how much it counts."""

    model: LanguageModel | Ngram
    weight: float
    """λ >= 0: scores then never rise with length, on which the search's early stop stands."""


class ShallowFusion(ModelScores):
    """log p(y_t | y_<t, x) + λ log p_LM(y_t | y_<t) (Cold Fusion, eq. 2); each hypothesis keeps both states."""

    def __init__(self, model: Seq2Seq, prior: Prior):
        super().__init__(model)
        self.prior = prior

    def start(self, batch: SourceBatch) -> tuple[Tree, Tree]:
        source, cache = self.model.start(batch)
        return source, {"model": cache, "lm": self.prior.model.begin(len(batch.src_mask))}

    def step(self, prev_tokens: Tensor, source: Tree, cache: Tree) -> tuple[Tensor, Tree]:
        scores, model_cache = super().step(prev_tokens, source, cache["model"])
        states, lm_cache = self.prior.model.advance(prev_tokens, cache["lm"])
        scores = scores + self.prior.weight * self.prior.model.logits(states).log_softmax(-1)
        return scores, {"model": model_cache, "lm": lm_cache}
