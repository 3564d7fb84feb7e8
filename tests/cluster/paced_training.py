"""The real training, slowed down so that a fault can strike in its midst, and with a trace of its steps."""

import time
from pathlib import Path

from tracing import record_step

from pipeline.training.job import train_run
from pipeline.training.step import PreparedStep, StepRunner


def train(run: Path) -> None:
    """`train_run` with the pace of the file `pace`, seconds a step, which may change while it runs."""
    accumulate = StepRunner.accumulate

    def paced(steps: StepRunner, step: int, prepared: PreparedStep):
        time.sleep(float((run / "pace").read_text()))
        record_step(run, step + 1)
        return accumulate(steps, step, prepared)

    StepRunner.accumulate = paced
    train_run(run, device="cpu", threads=1)
