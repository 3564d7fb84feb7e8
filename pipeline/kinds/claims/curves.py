from typing import Literal

from pipeline.kinds.claims.shared.claim import Findings
from pipeline.kinds.claims.shared.measurements import Measurements
from pipeline.kinds.claims.shared.trainings import TrainedPair, mean
from pipeline.kinds.training_curves import mean_gap


class CurvesClaim(TrainedPair):
    """At equal training loss, a system's dev loss is lower than another's."""

    kind: Literal["curves"]

    def judge(self, measured: Measurements) -> Findings:
        curves = [[measured.fit_curve(run) for run in pair] for pair in self.runs(measured)]
        gaps = [gap for pair in curves if (gap := mean_gap(*pair)) is not None]
        if len(gaps) < len(curves):
            return Findings("the curves have no training loss in common", [], measured.seed_test())
        name = f"{self.baseline} less {self.system}, dev loss at equal training loss (nats)"
        return self.by_gaps(measured, name, gaps, f"mean gap {mean(gaps):+.3f} nats")
