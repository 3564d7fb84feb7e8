"""Claims about the times of layers on this machine."""

from collections.abc import Iterator

from pipeline.analysis.claims.claim import Claim
from pipeline.analysis.claims.terms import Scores
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import LayerTimes, Product


class AboutLayers(Claim):
    """Needs no training."""

    about = "layers"

    def needs(self, view: PaperView, scores: Scores) -> Iterator[Product]:
        yield LayerTimes()
