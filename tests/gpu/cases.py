"""Counted cases: trainings and decodings of the papers at their own sizes, with random batches."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Case:
    """A step of `system` on micro-batches of `rows` sequences of `src` and `tgt` positions, maybe without dropout."""

    system: str
    rows: int
    src: int
    tgt: int
    ranks: int = 1
    micro_batches: int = 1
    dropout: bool = True


WORDS, CHARACTERS = 37000, 32

TRAININGS = {
    "base, 8 GPUs": Case("attention/base", 104, 30, 30, ranks=8),
    "base, 1 GPU": Case("attention/base", 834, 30, 30),
    "base, 2 micro-batches": Case("attention/base", 104, 30, 30, micro_batches=2),
    "big, 8 GPUs": Case("attention/big", 104, 30, 30, ranks=8),
    "big, 1 GPU": Case("attention/big", 834, 30, 30),
    "Weighted Transformer": Case("weighted/A", 104, 30, 30, ranks=8),
    "Weighted Transformer, 1 GPU": Case("weighted/A", 834, 30, 30),
    "DL4MT": Case("multichannel/DL4MT", 80, 10, 10),
    "DL4MT, 1280 sentences": Case("multichannel/DL4MT", 1280, 10, 10),
    "NTM-RNN-EMB": Case("multichannel/NTM-RNN-EMB", 80, 10, 10),
    "NTM-RNN-EMB, 1280 sentences": Case("multichannel/NTM-RNN-EMB", 1280, 10, 10),
    "ConvS2S": Case("multichannel/ConvS2S", 64, 20, 20),
    "ConvS2S, 1024 sentences": Case("multichannel/ConvS2S", 1024, 20, 20),
    "language model": Case("coldfusion/lm-source", 128, 0, 20),
    "CTC": Case("coldfusion/ctc", 16, 80, 10),
    "attention recogniser": Case("coldfusion/attention-source", 16, 80, 10),
    "Cold Fusion": Case("coldfusion/CF3", 16, 80, 10),
    "Cold Fusion, translation": Case("coldfusion/translation-cold", 64, 20, 20),
    "Cold Fusion, translation, 1024 sentences": Case("coldfusion/translation-cold", 1024, 20, 20),
    "CTC and attention": Case("anchors/joint-an4", 16, 80, 10),
}


MEASURED = {
    "tiny Transformer": Case("anchors/tiny-transformer", 164, 25, 25),
    "Cold Fusion, 64 utterances of 8 s": Case("coldfusion/CF3", 64, 800, 100),
}
"""Trainings that are measured and not counted."""


@dataclass(frozen=True)
class Decoding(Case):
    """A search with a model of `system`; its counts are of four positions, or of all frames of CTC."""

    kind: Literal["beam", "best path"] = "beam"
    language_model: bool = False


DECODINGS = {
    "beam search, Transformer": Decoding("attention/base", 32, 20, 4),
    "beam search, Weighted Transformer": Decoding("weighted/A", 32, 20, 4),
    "beam search, DL4MT": Decoding("multichannel/DL4MT", 32, 5, 4),
    "beam search, NTM-RNN-EMB": Decoding("multichannel/NTM-RNN-EMB", 32, 5, 4),
    "beam search, ConvS2S": Decoding("multichannel/ConvS2S", 32, 20, 4),
    "beam search, attention recogniser": Decoding("coldfusion/attention-source", 8, 40, 4),
    "beam search, Cold Fusion": Decoding("coldfusion/CF3", 8, 40, 4),
    "beam search, shallow fusion": Decoding("attention/base", 32, 20, 4, language_model=True),
    "prefix search": Decoding("coldfusion/ctc", 8, 40, 4),
    "prefix search with language model": Decoding("coldfusion/ctc", 8, 40, 4, language_model=True),
    "best path": Decoding("coldfusion/ctc", 8, 40, 4, kind="best path"),
    "joint search": Decoding("anchors/joint-an4", 8, 40, 4),
}

SEARCHES = {
    "beam search, base, 128 sentences": Decoding("attention/base", 128, 30, 30),
    "beam search, base, 512 sentences": Decoding("attention/base", 512, 30, 30),
}
"""Whole searches that are measured and not counted; new weights end hardly a sentence before its limit."""
