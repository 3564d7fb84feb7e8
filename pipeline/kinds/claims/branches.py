from typing import Annotated, Literal

from pydantic import Field

from pipeline.config import load_run
from pipeline.kinds.claims.shared.claim import Findings, Number
from pipeline.kinds.claims.shared.measurements import Measurements
from pipeline.kinds.claims.shared.trainings import AboutTraining, mean
from pipeline.kinds.evidence import within
from pipeline.kinds.training_curves import BranchCurve, branch_curves
from pipeline.layout import RUN_FILE


class BranchesClaim(AboutTraining):
    """A property of kappa and of alpha in an encoder layer over a training."""

    kind: Literal["branches"]
    layer: Annotated[int, Field(ge=1)] = Field(description="Encoder layer; the last one where there are fewer")
    quantity: Literal["spread", "changes_of_rank", "smallest_share"] = Field(
        description="Largest over smallest weight at the end; pairs that change order after the warm-up; smallest "
        "weight at the end as a share of 1/M"
    )
    at_least: Number
    at_most: Number | None = None

    def judge(self, measured: Measurements) -> Findings:
        found: dict[str, list[float]] = {}
        for run in measured.view.runs(self.system, self.dataset):
            folder = measured.run_folder(run)
            warmup = load_run(folder / RUN_FILE).training.branch_warmup_steps
            for curve in branch_curves(folder, self.layer):
                found.setdefault(curve.name, []).append(self.measure(curve, warmup or 0))
        evidence = [one for name in found for one in within(name, found[name], self.at_least, self.at_most)]
        ours = ", ".join(f"{name} {mean(values):.2f}" for name, values in found.items())
        return Findings(ours, evidence, measured.seed_test())

    def measure(self, curve: BranchCurve, warmup_steps: int) -> float:
        match self.quantity:
            case "spread":
                return curve.spread()
            case "changes_of_rank":
                return float(curve.changes_of_rank(warmup_steps))
            case "smallest_share":
                return curve.smallest_share()
