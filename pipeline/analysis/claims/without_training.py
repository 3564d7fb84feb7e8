"""Claims that need no training: times of layers on this machine, and identities that tests prove."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from pipeline.analysis.claims.claim import Claim, Findings
from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.evidence import over_seeds, within_bounds
from pipeline.analysis.names import LayerName, TestName
from pipeline.analysis.view import PaperView, Scores
from pipeline.core.artifacts import LayerTimes, Product
from pipeline.core.schema import Number


class LayerClaim(Claim):
    """A claim about times of layers."""

    about = "layers"

    layer: LayerName = Field(description="Layer type, as in the measurement")

    def needs(self, view: PaperView, scores: Scores) -> Iterator[Product]:
        yield LayerTimes()


class ExponentClaim(LayerClaim):
    """Time of a layer grows as a power of the sequence length or the width, with an exponent in a range."""

    kind: Literal["exponent"]
    variable: Literal["n", "d"] = Field(description="Sequence length or width")
    at_least: Number
    at_most: Number

    def evaluate(self, measured: Measurements) -> Findings:
        times = measured.folders.layer_timings()
        exponents = times.exponents(self.layer, self.variable)
        evidence = within_bounds(f"exponent of {self.variable}", exponents, self.at_least, self.at_most)
        mean = over_seeds("", exponents).value
        return Findings(f"{self.variable}^{mean:.2f}", evidence, times.description)


class CheaperClaim(LayerClaim):
    """A layer takes less time than another wherever the sequence is shorter than the width."""

    kind: Literal["cheaper_below_width"]
    than: LayerName

    def evaluate(self, measured: Measurements) -> Findings:
        times = measured.folders.layer_timings()
        evidence = times.cheaper_below_width(self.layer, self.than)
        ours = "; ".join(f"{one.name}: {1 + one.value:.1f} times" for one in evidence)
        return Findings(ours, evidence, times.description)


class ProvedClaim(Claim):
    """A statement that needs no training."""

    about = "identity"

    kind: Literal["test"]
    tests: list[TestName] = Field(min_length=1, description="file::name of the tests that prove it")

    def evaluate(self, measured: Measurements) -> Findings:
        return Findings("", [], "; ".join(self.tests))
