from typing import Literal

from pydantic import Field

from pipeline.analysis.claims.claim import Findings, Number
from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.claims.pools import NotRun
from pipeline.analysis.claims.terms import Scores
from pipeline.analysis.claims.trainings import TrainedPair, mean


class StepsClaim(TrainedPair):
    """A system reaches another's final dev loss within a share of the other's steps."""

    kind: Literal["steps"]
    share: Number = Field(gt=0, description="Of the baseline's steps")

    def baselines(self, scores: Scores) -> list[tuple[str, str]]:
        return [(self.baseline, self.dataset)]

    def judge(self, measured: Measurements) -> Findings:
        """In nats: what the system's dev loss has fallen below the baseline's final one, in the share of its steps."""
        runs = self.runs(measured)
        ours, theirs = ([measured.curve(run) for run in one] for one in runs)
        total = float(theirs[0].steps[-1])
        if self.share * total < ours[0].steps[0]:
            folder = measured.run_folder(runs[0][0])
            raise NotRun(f"{folder} was not validated in the first {self.share:.0%} of steps")
        reached = [curve.best_dev_within(self.share * total) for curve in ours]
        name = f"final dev loss less that in {self.share:.0%} of its steps (nats)"
        evidence = self.lower(name, self.losses(measured, self.system, reached), self.losses(measured, self.baseline))
        target = mean([float(curve.dev[-1]) for curve in theirs])
        shares = [curve.steps_to(target) / total for curve in ours]
        seconds = [mean([measured.cost(run).total.seconds for run in one]) for one in runs]
        time = total / ours[0].steps[-1] * seconds[0] / seconds[1]
        after = [
            f"after {share:.0%} of its steps, {share * time:.0%} of its time" if share < float("inf") else "not reached"
            for share in shares
        ]
        return Findings(f"{self.baseline}'s final dev loss: {'; '.join(after)}", [evidence], "dev losses of trainings")
