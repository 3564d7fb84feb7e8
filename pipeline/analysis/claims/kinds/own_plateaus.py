from typing import Literal

import numpy as np
from pydantic import Field

from pipeline.analysis.claims.claim import Findings, Number
from pipeline.analysis.claims.judged import PLATEAU
from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.claims.pools import Values
from pipeline.analysis.claims.terms import Scores
from pipeline.analysis.claims.trainings import TrainedPair
from pipeline.analysis.evidence import contrast
from pipeline.core.artifacts import RunId


class OwnPlateausClaim(TrainedPair):
    """A system gets to its own plateau within a share of the steps in which another gets to its own."""

    quantity = "steps_to_plateau"
    kind: Literal["own_plateaus"]
    share: Number = Field(gt=0, description="Of the baseline's steps")

    def baselines(self, scores: Scores) -> list[tuple[str, str]]:
        """Both, as one that still learns has none."""
        return [(one, self.dataset) for one in self.systems]

    def judge(self, measured: Measurements) -> Findings:
        def steps(runs: list[RunId]) -> Values:
            curves = [measured.curve(run) for run in runs]
            return [curve.steps_to((1 + PLATEAU) * float(curve.dev.min())) for curve in curves]

        ours, theirs = (measured.trainings(one, self.dataset, self.quantity, steps) for one in self.systems)
        name = f"logarithm of {self.share:.0%} of {self.baseline}'s steps to its plateau over those of {self.system}"
        of = f"within {100 * PLATEAU:g} % of its lowest dev loss"
        reached = f"{of}: {self.system} after {ours.mean:.0f} updates, {self.baseline} after {theirs.mean:.0f}"
        evidence = contrast(name, [(1, theirs), (-1, ours)], float(np.log(self.share)), np.log)
        return Findings(reached, [evidence], "steps of trainings")
