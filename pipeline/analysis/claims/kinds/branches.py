from typing import Literal

from pydantic import Field

from pipeline.analysis.claims.claim import Findings, Number
from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.claims.pools import NotRun
from pipeline.analysis.claims.trainings import AboutTraining, mean
from pipeline.analysis.evidence import within
from pipeline.analysis.training_curves import branch_curves
from pipeline.core.schema import Count


class BranchesClaim(AboutTraining):
    """What training makes of the draw of kappa and of alpha in an encoder layer."""

    kind: Literal["branches"]
    layer: Count = Field(description="Encoder layer; the last one where there are fewer")
    quantity: Literal["spread", "changes_of_rank", "smallest_share"] = Field(
        description="Each weight at the end over what it was drawn as: the largest over the smallest, or the "
        "smallest; or pairs whose order is no more that of their draw"
    )
    at_least: Number
    at_most: Number | None = None

    def judge(self, measured: Measurements) -> Findings:
        found: dict[str, list[float]] = {}
        for run in measured.view.runs(self.system, self.dataset):
            for curve in branch_curves(measured.run_folder(run), self.layer):
                if curve.steps[0] > 0:
                    raise NotRun(f"{run.system} seed {run.seed} was trained before draws were logged; train it again")
                found.setdefault(curve.name, []).append(float(getattr(curve, self.quantity)()))
        evidence = [one for name in found for one in within(name, found[name], self.at_least, self.at_most)]
        ours = ", ".join(f"{name} {mean(values):.2f}" for name, values in found.items())
        return Findings(ours, evidence, "t over trainings")
