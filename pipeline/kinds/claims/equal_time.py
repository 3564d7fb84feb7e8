from typing import Literal

from pipeline.kinds.claims.shared.claim import Findings
from pipeline.kinds.claims.shared.measurements import Measurements, NotRun
from pipeline.kinds.claims.shared.trainings import TrainedPair


class EqualTimeClaim(TrainedPair):
    """After as much time of training, a system's dev loss is lower than another's."""

    kind: Literal["equal_time"]

    def judge(self, measured: Measurements) -> Findings:
        """At the time at which the shorter training ended, updates of a training counted as equally long."""
        gaps, ours = [], []
        for pair in self.runs(measured):
            curves, costs = [measured.curve(run) for run in pair], [measured.cost(run) for run in pair]
            seconds, hardware = [cost.total.seconds for cost in costs], {cost.hardware for cost in costs}
            if len(hardware) > 1:
                raise NotRun(f"trained on different hardware: {', '.join(sorted(hardware))}")
            steps = [min(seconds) / own * curve.steps[-1] for own, curve in zip(seconds, curves, strict=True)]
            if any(reached < curve.steps[0] for reached, curve in zip(steps, curves, strict=True)):
                raise NotRun(f"not both were validated in the first {min(seconds):.0f} s of training")
            loss, baseline = (curve.best_dev_within(reached) for reached, curve in zip(steps, curves, strict=True))
            gaps.append(baseline - loss)
            ours.append(
                f"{loss:.3f} and {baseline:.3f} nats after {min(seconds):.0f} s "
                f"(trained for {seconds[0]:.0f} and {seconds[1]:.0f} s)"
            )
        name = f"{self.baseline} less {self.system}, dev loss at equal time (nats)"
        return self.by_gaps(measured, name, gaps, f"{self.system} and {self.baseline}: {'; '.join(ours)}")
