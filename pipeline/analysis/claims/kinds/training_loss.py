from typing import Literal

from pydantic import Field

from pipeline.analysis.claims.claim import Chain, Findings
from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.claims.terms import Scores
from pipeline.analysis.claims.trainings import AboutTrainings
from pipeline.analysis.evidence import contrast
from pipeline.analysis.names import SystemName
from pipeline.core.artifacts import RunId


class TrainingLossClaim(Chain, AboutTrainings):
    """Loss on training data at the end (nats, without smoothing and dropout) rises from each system to the next."""

    kind: Literal["training_loss"]
    ascending: list[SystemName] = Field(min_length=2, description="Systems, the smallest loss first")

    @property
    def systems(self) -> list[str]:
        return self.ascending

    def baselines(self, scores: Scores) -> list[tuple[str, str]]:
        return [(self.ascending[1], self.dataset)]

    def favoured(self, scores: Scores) -> list[tuple[str, str]]:
        return [(self.ascending[0], self.dataset)]

    def judge(self, measured: Measurements) -> Findings:
        def losses(runs: list[RunId]) -> list[float]:
            return [float(measured.fit_curve(run).train[-1]) for run in runs]

        lower, upper = (measured.trainings(one, self.dataset, "training_loss", losses) for one in self.ascending)
        evidence = contrast(f"{self.ascending[1]} less {self.ascending[0]}", [(1, upper), (-1, lower)])
        ours = f"{self.ascending[0]} {lower.mean:.3f}, {self.ascending[1]} {upper.mean:.3f} nats per symbol"
        return Findings(ours, [evidence], "losses of trainings")
