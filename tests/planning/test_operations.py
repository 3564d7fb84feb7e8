"""Counted FLOPs of trainings, beside those that finished trainings recorded."""

from pathlib import Path

import pytest

from pipeline.workflow.rules import training_flops
from reprise.cli.record import RunRecord

MEASURED = Path(__file__).resolve().parents[2] / "docs/measured"
RECORDS = [
    "read-aloud/*-attention-source-*",
    "read-aloud/*-CF4-*",
    "multi30k/readings/attention-C1-*",
    "**/*-ctc-an4-*",
]


@pytest.mark.parametrize("pattern", RECORDS)
def test_forecast_flops_are_near_those_of_a_finished_training(pattern):
    (path, *_) = sorted(MEASURED.glob(f"{pattern}seed1.json"))
    record = RunRecord.read(path)
    assert record.trained.steps == record.run.training.max_steps and record.cost
    assert training_flops(record.run) == pytest.approx(record.cost.total.flops, rel=0.25)
