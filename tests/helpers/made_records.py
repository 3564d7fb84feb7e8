"""Records as the stages write them, of made-up values: what a test says nothing of has some value."""

import math

from pipeline.records.training import (
    Loss,
    Machine,
    Parameters,
    StartCost,
    TotalCost,
    TrainedRun,
    TrainingCost,
    UpdatesLoss,
    ValidationLine,
)

UPDATES = UpdatesLoss(loss_per_token=1.0, nll_per_token=1.0, perplexity=math.e)
MACHINE = Machine(device="toy processor", threads=1, processes=1, torch="2")
START = StartCost(
    **dict(MACHINE),
    started="2026-01-01T00:00:00+00:00",
    stopped="2026-01-01T00:00:10+00:00",
    node="toy",
    steps=1,
    seconds=10.0,
    gpu_hours=0.0,
    peak_memory_gib=1.0,
    tokens=1,
    flops=1e9,
)


def data_loss(nll: float) -> Loss:
    return Loss(nll_per_token=nll, perplexity=math.exp(nll), tokens=100)


def trained_run(**values) -> TrainedRun:
    made = {
        "key": "toy",
        "weights_digest": "toy",
        "steps": 1,
        "dev": data_loss(1.0),
        "train": UPDATES,
        "parameters": Parameters(total=1, branch_weights=0),
        "skipped_updates": 0,
        "updates_per_epoch": 1,
        "padding": 0.0,
        "left_out_pairs": 0,
    }
    return TrainedRun.model_validate(made | values)


def start_cost(**values) -> StartCost:
    return StartCost.model_validate(dict(START) | values)


def training_cost(*starts: StartCost) -> TrainingCost:
    return TrainingCost(starts=starts, total=TotalCost.of(starts))


def validation_line(**values) -> ValidationLine:
    return ValidationLine.model_validate({"train": UPDATES} | values)
