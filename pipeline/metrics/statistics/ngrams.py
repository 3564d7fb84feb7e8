"""Counting n-grams by sacreBLEU."""

import re

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from pipeline.data.text.vocabulary import UNKNOWN_WORD
from pipeline.metrics.statistics.bleu import MAX_ORDER, Recipe, Smoothing
from pipeline.metrics.statistics.texts import Translations

ONE_WORD = "OOV"
"""For the symbol of unknown words, as Table 3 of the Multi-channel Encoder prints it."""
HYPHEN = re.compile(r"(\S)-(\S)", re.ASCII)


def split_compounds(line: str) -> str:
    """Each hyphen between two non-spaces becomes a token of its own, as tensor2tensor's `get_ende_bleu.sh` has it."""
    return HYPHEN.sub(r"\1 ##AT##-##AT## \2", line)


class SentenceBLEU(BLEU):
    """sacreBLEU's counting, giving the statistics of each sentence in place of one score."""

    def __init__(self, recipe: Recipe, smoothing: Smoothing = "none"):
        super().__init__(lowercase=recipe.lowercase, tokenize=recipe.tokenizer, smooth_method=smoothing, force=True)
        self.recipe = recipe

    def statistics(self, texts: Translations) -> np.ndarray:
        """(N, 10) int32, of N hypotheses against one or more lists of N references."""
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
        """How the score is made. sacreBLEU's own signature is its last part."""
        self.num_refs = len(texts.raw.references)
        own = [f"text:{'raw' if self.recipe.text == 'raw' else texts.tokeniser}"]
        if self.recipe.compound_split:
            own.append("compounds:split")
        if self.recipe.reference_length != "closest":
            own.append(f"reflen:{self.recipe.reference_length}")
        if self.recipe.whole_unknown:
            own.append("unknown:one-word")
        return "|".join([*own, self.get_signature().format()])
