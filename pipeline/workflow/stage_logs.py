"""Which logs tell of a product: those of the stages that may make it, as workflow/rules call them."""

from pathlib import Path

from pipeline.core.artifacts import (
    Alignments,
    AttentionMaps,
    Averaged,
    Claims,
    Encoded,
    Figure,
    Gates,
    LayerTimes,
    ModelSizes,
    OfDataset,
    Parse,
    Prepared,
    Product,
    Raw,
    Score,
    Specification,
    Spoken,
    Table,
    Transcript,
    Translation,
    Tuned,
    Vocabulary,
)
from pipeline.core.layout import Layout

OF_CORPORA: dict[type[OfDataset], tuple[str, ...]] = {
    Raw: ("generate", "download", "collect", "collect-text", "collect-recordings"),
    Spoken: ("speak",),
    Prepared: ("prepare",),
    Vocabulary: ("subwords",),
    Encoded: ("encode", "features", "encode-text"),
}
SCORERS = {"scores": ("score", "score-trees"), "phenomena": ("phenomena",), "perplexities": ("perplexity",)}


def logs_of(layout: Layout, product: Product) -> list[Path]:
    return [layout.log(product, stage) for stage in stages_of(product)]


def stages_of(product: Product) -> list[str]:
    """How the logs are called; none of a training, which says how it ended (status/runs.py)."""
    match product:
        case OfDataset():
            return [*OF_CORPORA[type(product)]]
        case Specification():
            return ["describe"]
        case Score(_, measure, decoding, split, scored_on):
            end = f"{split}@{scored_on}" if scored_on else split
            return [f"{name}-{decoding}-{end}" for name in SCORERS[measure]]
        case Translation(_, decoding, split):
            return [f"translate-{decoding}-{split}"]
        case Parse(_, decoding, split):
            return [f"parse-{decoding}-{split}"]
        case Transcript(_, decoding, split, scored_on):
            return [f"transcribe-{decoding}-{split}@{scored_on}"]
        case AttentionMaps(_, decoding, split, choice):
            return [f"attention-{decoding}-{split}-{choice}"]
        case Averaged(_, decoding):
            return [f"average-{decoding}"]
        case Tuned(_, decoding):
            return [f"tune-{decoding}"]
        case Alignments(_, split):
            return [f"alignments-{split}"]
        case ModelSizes(paper):
            return [f"model-sizes-{paper}"]
        case Gates():
            return ["gates"]
        case LayerTimes():
            return ["layer-times"]
        case Table(paper, name) | Figure(paper, name):
            return [f"{paper}-{name}"]
        case Claims(paper):
            return [f"{paper}-claims"]
    return []
