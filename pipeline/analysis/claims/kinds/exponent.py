from typing import Literal

from pydantic import Field

from pipeline.analysis.claims.claim import Findings, Number
from pipeline.analysis.claims.layers import AboutLayers
from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.evidence import over_seeds, within
from pipeline.analysis.names import LayerName


class ExponentClaim(AboutLayers):
    """Time of a layer grows as a power of the sequence length or the width, with an exponent in a range."""

    kind: Literal["exponent"]
    layer: LayerName = Field(description="Layer type, as in the measurement")
    variable: Literal["n", "d"] = Field(description="Sequence length or width")
    at_least: Number
    at_most: Number

    def judge(self, measured: Measurements) -> Findings:
        times = measured.layer_times()
        exponents = times.exponents(self.layer, self.variable)
        evidence = within(f"exponent of {self.variable}", exponents, self.at_least, self.at_most)
        mean = over_seeds("", exponents).value
        return Findings(f"{self.variable}^{mean:.2f}", evidence, times.description)
