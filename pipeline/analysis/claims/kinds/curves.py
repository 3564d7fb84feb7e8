from typing import Literal

from pipeline.analysis.claims.claim import Findings
from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.claims.trainings import TrainedPair
from pipeline.analysis.evidence import contrast
from pipeline.analysis.training_curves import curve_gaps, mean_gaps


class CurvesClaim(TrainedPair):
    """At equal training loss, a system's dev loss is lower than another's, beyond the gaps within a system."""

    quantity = "curve_gap"
    kind: Literal["curves"]

    def judge(self, measured: Measurements) -> Findings:
        """Every training is compared with every one of the other system; the noise is that of gaps within a system."""
        ours, theirs = ([measured.fit_curve(run) for run in runs] for runs in self.runs(measured))
        gaps = mean_gaps(ours, theirs)
        if gaps is None or not (curve_gaps(ours) and curve_gaps(theirs)):
            return Findings("the curves have no training loss in common", [], "")
        samples = [
            measured.trainings(
                one, self.dataset, self.quantity, lambda runs: curve_gaps([*map(measured.fit_curve, runs)])
            )
            for one in self.systems
        ]
        name = f"{self.baseline} less {self.system}, dev loss at equal training loss (nats)"
        evidence = contrast(name, [(1, samples[1]), (-1, samples[0])], float(gaps.mean()))
        return Findings(f"mean gap {gaps.mean():+.3f} nats", [evidence], "gaps between curves")
