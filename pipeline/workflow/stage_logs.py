"""Find the logs of the jobs that make a product, named as the rules name them."""

from pathlib import Path

from pipeline.core.artifacts import (
    Claims,
    DatasetArtifact,
    Encoded,
    Figure,
    LayerTimes,
    ModelSizes,
    Outputs,
    Prepared,
    Product,
    Raw,
    Scores,
    Spoken,
    Table,
    Vocabulary,
    manifest_of,
)
from pipeline.core.layout import Layout

OF_CORPORA: dict[type[DatasetArtifact], tuple[str, ...]] = {
    Raw: ("generate", "download"),
    Spoken: ("speak",),
    Prepared: ("prepare",),
    Vocabulary: ("subwords",),
    Encoded: ("encode", "features"),
}


def logs_of(layout: Layout, product: Product) -> list[Path]:
    return [layout.log(product, stage) for stage in stages_of(product)]


def stages_of(product: Product) -> list[str]:
    """Return the names of a product's logs; none of a training, which records how it ended (runs.py)."""
    match manifest_of(product):
        case DatasetArtifact() as made:
            return [*OF_CORPORA[type(made)]]
        case Outputs(_, decoding):
            return [f"decode-{decoding}"]
        case Scores(_, decoding):
            return [f"score-{decoding}"]
        case ModelSizes(paper):
            return [f"model-sizes-{paper}"]
        case LayerTimes():
            return ["layer-times"]
        case Table(paper, name) | Figure(paper, name):
            return [f"{paper}-{name}"]
        case Claims(paper):
            return [f"{paper}-claims"]
    return []
