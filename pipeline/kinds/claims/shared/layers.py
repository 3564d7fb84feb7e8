"""Claims about the times of layers on this machine."""

from collections.abc import Iterator

from pipeline.core.artifacts import LayerTimes, Product
from pipeline.kinds.claims.shared.claim import Claim
from pipeline.kinds.claims.shared.terms import Scores
from pipeline.kinds.view import PaperView


class AboutLayers(Claim):
    """Needs no training."""

    about = "layers"

    def needs(self, view: PaperView, scores: Scores) -> Iterator[Product]:
        yield LayerTimes()
