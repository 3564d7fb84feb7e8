from typing import Literal

from pipeline.analysis.claims.claim import Findings
from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.claims.pools import NotRun
from pipeline.analysis.claims.trainings import TrainedPair, mean


class EqualTimeClaim(TrainedPair):
    """After as much time of training, a system's dev loss is lower than another's."""

    kind: Literal["equal_time"]

    def judge(self, measured: Measurements) -> Findings:
        """At the time at which the shorter training ended, updates of a training counted as equally long."""
        runs = self.runs(measured)
        curves = [[measured.curve(run) for run in one] for one in runs]
        costs = [[measured.cost(run) for run in one] for one in runs]
        if len(hardware := {cost.hardware for one in costs for cost in one}) > 1:
            raise NotRun(f"trained on different hardware: {', '.join(sorted(hardware))}")
        seconds = [mean([cost.total.seconds for cost in one]) for one in costs]
        losses = []
        for own, several in zip(seconds, curves, strict=True):
            reached = min(seconds) / own * several[0].steps[-1]
            if reached < several[0].steps[0]:
                raise NotRun(f"not both were validated in the first {min(seconds):.0f} s of training")
            losses.append([curve.best_dev_within(reached) for curve in several])
        samples = [self.losses(measured, one, own) for one, own in zip(self.systems, losses, strict=True)]
        ours = (
            f"{self.system} and {self.baseline}: {samples[0].mean:.3f} and {samples[1].mean:.3f} nats after "
            f"{min(seconds):.0f} s (trained for {seconds[0]:.0f} and {seconds[1]:.0f} s)"
        )
        return Findings(ours, [self.lower("dev loss at equal time (nats)", *samples)], "dev losses of trainings")
