from typing import Literal

from pydantic import Field

from pipeline.kinds.claims.shared.claim import Findings, Number
from pipeline.kinds.claims.shared.measurements import Measurements, NotRun
from pipeline.kinds.claims.shared.trainings import TrainedPair


class StepsClaim(TrainedPair):
    """A system reaches another's final dev loss within a share of the other's steps."""

    kind: Literal["steps"]
    share: Number = Field(gt=0, description="Of the baseline's steps")

    def judge(self, measured: Measurements) -> Findings:
        """In nats: what the system's dev loss has fallen below the baseline's final one, in the share of its steps."""
        gaps, reached = [], []
        for pair in self.runs(measured):
            ours, theirs = (measured.curve(run) for run in pair)
            seconds = [measured.cost(run).total.seconds for run in pair]
            target, total = float(theirs.dev[-1]), float(theirs.steps[-1])
            if self.share * total < ours.steps[0]:
                folder = measured.run_folder(pair[0])
                raise NotRun(f"{folder} was not validated in the first {self.share:.0%} of steps")
            gaps.append(target - ours.best_dev_within(self.share * total))
            share = ours.steps_to(target) / total
            time = share * total / ours.steps[-1] * seconds[0] / seconds[1]
            after = f"after {share:.0%} of its steps, {time:.0%} of its time"
            reached.append(after if share < float("inf") else "not reached")
        name = f"{self.baseline}'s final dev loss less {self.system}'s in {self.share:.0%} of its steps (nats)"
        return self.by_gaps(measured, name, gaps, f"{self.baseline}'s final dev loss: {'; '.join(reached)}")
