from typing import Literal

from pipeline.kinds.claims.shared.claim import Findings
from pipeline.kinds.claims.shared.layers import AboutLayers
from pipeline.kinds.claims.shared.measurements import Measurements
from pipeline.kinds.names import LayerName


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
