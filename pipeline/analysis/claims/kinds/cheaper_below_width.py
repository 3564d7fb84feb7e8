from typing import Literal

from pipeline.analysis.claims.claim import Findings
from pipeline.analysis.claims.layers import AboutLayers
from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.names import LayerName


class CheaperClaim(AboutLayers):
    """A layer takes less time than another wherever the sequence is shorter than the width."""

    kind: Literal["cheaper_below_width"]
    layer: LayerName
    than: LayerName

    def judge(self, measured: Measurements) -> Findings:
        times = measured.layer_times()
        evidence = times.cheaper_below_width(self.layer, self.than)
        ours = "; ".join(f"{one.name}: {1 + one.value:.1f} times" for one in evidence)
        return Findings(ours, evidence, times.description)
