from typing import Literal

from pydantic import Field

from pipeline.kinds.claims.shared.claim import Findings, Number
from pipeline.kinds.claims.shared.layers import AboutLayers
from pipeline.kinds.claims.shared.measurements import Measurements
from pipeline.kinds.evidence import within
from pipeline.kinds.names import LayerName


class ExponentClaim(AboutLayers):
    """Time of a layer grows as a power of the sequence length or the width, with an exponent in a range."""

    kind: Literal["exponent"]
    layer: LayerName = Field(description="Layer type, as in the measurement")
    variable: Literal["n", "d"] = Field(description="Sequence length or width")
    at_least: Number
    at_most: Number

    def judge(self, measured: Measurements) -> Findings:
        times = measured.layer_times()
        exponent = times.exponent(self.layer, self.variable)
        evidence = within(f"exponent of {self.variable}", exponent.estimates, self.at_least, self.at_most)
        return Findings(f"{self.variable}^{exponent.value:.2f}", evidence, times.description)
