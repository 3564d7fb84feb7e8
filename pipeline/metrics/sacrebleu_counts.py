"""N-gram counts of single sentences by sacreBLEU; the only module that loads it for BLEU."""

import re

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from pipeline.data.text.vocabulary import UNKNOWN_WORD
from pipeline.metrics.bleu import MAX_ORDER, Recipe, Smoothing
from pipeline.metrics.metric import Translations

ONE_WORD = "OOV"
"""Stands for the symbol of unknown words, as in Table 3 of the Multi-channel Encoder."""
HYPHEN = re.compile(r"(\S)-(\S)", re.ASCII)


def split_compounds(line: str) -> str:
    """Make each hyphen between two non-spaces a token, as tensor2tensor's `get_ende_bleu.sh` does."""
    return HYPHEN.sub(r"\1 ##AT##-##AT## \2", line)


class SentenceBLEU(BLEU):
    """sacreBLEU's counter that returns statistics of each sentence in place of one score."""

    def __init__(self, recipe: Recipe, smoothing: Smoothing = "none"):
        super().__init__(lowercase=recipe.lowercase, tokenize=recipe.tokenizer, smooth_method=smoothing, force=True)
        self.recipe = recipe

    def statistics(self, texts: Translations) -> np.ndarray:
        """Count N hypotheses against one or more lists of N references.

        Returns:
            int32, shape (N, 10).
        """
        lines = texts.raw if self.recipe.text == "raw" else texts.tokenised
        hypotheses, references = lines.hypotheses, lines.references
        if self.recipe.compound_split:
            hypotheses = [split_compounds(line) for line in hypotheses]
            references = [[split_compounds(line) for line in lines] for lines in references]
        if self.recipe.whole_unknown:
            hypotheses = [line.replace(UNKNOWN_WORD, ONE_WORD) for line in hypotheses]
        rows = self._extract_corpus_statistics(hypotheses, references)
        return np.array(rows, dtype=np.int32).reshape(-1, 2 + 2 * MAX_ORDER)

    def _get_closest_ref_len(self, hyp_len: int, ref_lens: list[int]) -> int:
        if self.recipe.reference_length == "shortest":  # mteval-v11b
            return min(ref_lens)
        return super()._get_closest_ref_len(hyp_len, ref_lens)

    def signature(self, texts: Translations) -> str:
        """Describe how the score is counted; ends with sacreBLEU's own signature."""
        self.num_refs = len(texts.raw.references)
        own = [f"text:{'raw' if self.recipe.text == 'raw' else texts.tokeniser}"]
        if self.recipe.compound_split:
            own.append("compounds:split")
        if self.recipe.reference_length != "closest":
            own.append(f"reflen:{self.recipe.reference_length}")
        if self.recipe.whole_unknown:
            own.append("unknown:one-word")
        return "|".join([*own, self.get_signature().format()])
