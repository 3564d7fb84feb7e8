"""Random search of a run's learning rate (Cold Fusion, section 4.3), by short trainings with its other settings."""

import logging
import os
import random
from functools import partial
from math import exp, inf, log
from pathlib import Path
from typing import Any

from pipeline.config import RunSpec, load_run
from pipeline.core.errors import UserError
from pipeline.core.json_csv import write_csv
from pipeline.core.layout import DONE_FILE, RUN_FILE
from pipeline.core.records.training import TrainedRun
from pipeline.training import guards, job, specification

logger = logging.getLogger(__name__)


def search_rate(
    *,
    run: Path,
    lowest: float,
    highest: float,
    trials: int = 8,
    steps: int,
    seed: int = 1,
    out: Path,
    options: specification.MachineOptions,
) -> None:
    r"""Tune the learning rate of a run by random search.

        python -m pipeline search-rate --run work/demo/runs/coldfusion/CF4/grammar-speech-source/seed1-… \
            --lowest 0.0001 --highest 0.002 --trials 8 --steps 200 --out rates.csv

    Train the run `trials` times for `steps` steps, each time with another rate, drawn log-uniformly. Write a CSV of
    rate, best dev loss (nats) and its step, the best trial first. Trainings lie beside the CSV in `<its name>-trials`;
    the same command resumes them, and more trials add to them. The run itself does not change: set the best value in
    the scale's file.

    Args:
        run: Folder that holds run.yaml.
        lowest: Lowest value of `training.lr`, or of `training.lr_factor` if the schedule is inverse_sqrt.
        highest: Highest value.
        trials: Number of trainings.
        steps: Steps of each training.
        seed: Seed of the draws.
        out: CSV to write.
        options: Device, threads and checkpoint interval.

    Raises:
        UserError: The range is empty or begins below the run's `min_lr`, there are no trials, or all diverged; or see
            `train_run`.
    """
    if not 0 < lowest < highest:
        raise UserError(f"--lowest {lowest:g} --highest {highest:g}: name two numbers above 0, the lower one first")
    if trials < 1:
        raise UserError(f"--trials {trials}: train at least once")
    spec, rng = load_run(run / RUN_FILE), random.Random(seed)
    name = "lr_factor" if spec.training.schedule == "inverse_sqrt" else "lr"
    if spec.training.schedule == "plateau" and lowest < (least := spec.training.min_lr or 0.0):
        raise UserError(f"--lowest {lowest:g}: a training ends when its rate is below min_lr {least:g}; raise --lowest")
    rows: list[dict[str, Any]] = []
    for number in range(1, trials + 1):
        rate = float(f"{exp(rng.uniform(log(lowest), log(highest))):.3g}")
        folder = out.with_name(f"{out.stem}-trials") / f"{name}-{rate:g}"
        folder.mkdir(parents=True, exist_ok=True)
        changed = trial(spec, name, rate, steps).map_folders(partial(os.path.relpath, start=folder))
        specification.write_specification(folder, changed.model_dump_json())
        logger.info("trial %d of %d: %s %g", number, trials, name, rate)
        rows.append({name: rate, **trained(folder, options), "folder": str(folder)})
    rows.sort(key=lambda row: row["best_dev_loss"])
    write_csv(out, rows)
    if rows[0]["best_dev_loss"] == inf:
        raise UserError(f"{out}: every training diverged; lower --lowest and --highest")
    logger.info(
        "%s: best %s %g; set it for %s/%s in workflow/scales", out, name, rows[0][name], spec.paper, spec.system
    )


def trial(spec: RunSpec, name: str, rate: float, steps: int) -> RunSpec:
    """Return the `spec` of a training of `steps` with another `rate`, its setting `name`, validated at its end.

    Branch weights are frozen from the same step on as in the run.
    """
    changed = {name: rate, "max_steps": steps}
    if frozen := spec.training.branch_freeze_steps:
        changed["branch_freeze_steps"] = min(frozen, max(0, steps - (spec.training.max_steps - frozen)))
    changed |= {key: min(getattr(spec.training, key), steps) for key in ("validate_every", "checkpoint_every")}
    return spec.model_copy(update={"training": spec.training.model_copy(update=changed)})


def trained(folder: Path, options: specification.MachineOptions) -> dict[str, float]:
    """Return `best_dev_loss` of a trial, nats per token, infinite if diverged, and its `step`; train it unless done."""
    try:
        job.train_owned(folder, options)
    except guards.Diverged as error:
        logger.warning("%s", error)
        return {"best_dev_loss": inf, "step": 0}
    done = TrainedRun.read(folder / DONE_FILE)
    best, step = (done.best_dev, done.best_dev.step) if done.best_dev else (done.dev, done.steps)
    return {"best_dev_loss": best.nll_per_token, "step": step}
