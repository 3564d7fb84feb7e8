from itertools import pairwise
from typing import Literal

from pydantic import Field

from pipeline.kinds.claims.shared.claim import Findings
from pipeline.kinds.claims.shared.measurements import Measurements
from pipeline.kinds.claims.shared.trainings import RESOLUTION_NATS, AboutTrainings, mean
from pipeline.kinds.evidence import over_seeds
from pipeline.kinds.names import SystemName


class TrainingLossClaim(AboutTrainings):
    """Loss on training data at the end (nats, without smoothing and dropout) rises from each system to the next."""

    kind: Literal["training_loss"]
    ascending: list[SystemName] = Field(min_length=2, description="Systems, the smallest loss first")

    @property
    def systems(self) -> list[str]:
        return self.ascending

    def judge(self, measured: Measurements) -> Findings:
        losses = [
            [float(measured.fit_curve(run).train[-1]) for run in measured.view.runs(system, self.dataset)]
            for system in self.ascending
        ]
        named = list(zip(self.ascending, losses, strict=True))
        evidence = []
        for (smaller, lower), (larger, upper) in pairwise(named):
            gaps = [b - a for a, b in zip(lower, upper, strict=True)]
            evidence.append(over_seeds(f"{larger} less {smaller}", gaps, RESOLUTION_NATS))
        ours = ", ".join(f"{system} {mean(values):.3f}" for system, values in named)
        return Findings(f"{ours} nats per subword", evidence, measured.seed_test())
