"""Longer training of a run: from its last checkpoint, as another run beside it."""

import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import yaml

from pipeline.config import RunSpec, run_folder_above
from pipeline.core.command_line import Argument
from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write
from pipeline.core.layout import COST_FILE, DONE_FILE, RUN_FILE
from pipeline.core.records.record import read_note
from pipeline.core.records.training import TrainedRun, TrainingCost
from pipeline.core.schema import load_yaml, validate
from pipeline.core.yaml_file import LARGEST
from pipeline.papers.content import DIGITS, run_content
from pipeline.papers.project import Settings
from pipeline.papers.settings import parse_settings
from pipeline.training.specification import MachineOptions
from reprise.named import find_run

log = logging.getLogger(__name__)


def continue_run(
    name: Annotated[str, Argument(metavar="RUN")],
    *,
    steps: int,
    prepare: bool = False,
    options: MachineOptions,
    settings: Settings = (),
) -> None:
    """Train a run for more steps, from its last checkpoint.

        reprise continue attention/base/wmt14-en-de/1 --steps 200000

    Trains with as many threads as the run had, if it had no GPU and this machine has as many cores; --threads overrides
    this. The longer run is another run beside it, where the workflow looks for a run of so many steps: it finds it once
    `max_steps` says so. Its weights are byte for byte those of a training that was as long from the start, if the
    schedule does not depend on the length. If it does (branch_freeze_steps), `done.json` names the run it continues.

    Args:
        name: Run as paper/system/dataset/seed, or its folder.
        steps: Training steps in all.
        prepare: Do not train: the workflow will.
        options: Device, threads and checkpoint interval.
        settings: Override a key of config.yaml. May be given several times.
    """
    folder = run_folder_above(Path(name)) or find_run(name, parse_settings(settings)).folder
    train_longer(folder, steps, prepare, options)


def train_longer(run: Path, steps: int, prepare: bool, options: MachineOptions) -> None:
    """Prepare the longer run beside the run in a folder, and train it unless `prepare`.

    Raises:
        UserError: The run is not shorter, ended by itself, or has no checkpoint.
    """
    from pipeline.training.checkpoint import Checkpoints  # brings torch, as the others do
    from pipeline.training.distributed import Group
    from pipeline.training.job import train_owned
    from pipeline.training.machine import choose_device, choose_threads
    from pipeline.training.specification import run_key
    from pipeline.training.warm_start import continue_from, depends_on_length, with_length

    if not prepare:  # what can't be trained here is begun nowhere
        choose_threads(options.threads)
        choose_device(options.device, Group.from_environment().local_rank)
    if options.threads is None and (cost := read_note(TrainingCost, run / COST_FILE)):
        last = cost.starts[-1]  # by another number of threads weights are the same within rounding only
        usable = not last.gpu_hours and last.threads <= len(os.sched_getaffinity(0))
        options = replace(options, threads=last.threads if usable else None)
    if steps >= LARGEST:
        raise UserError(f"--steps {steps}: no training has so many updates")
    written: RunSpec = validate(RunSpec, load_yaml(run / RUN_FILE), str(run / RUN_FILE))
    if steps <= written.training.max_steps:
        raise UserError(f"--steps {steps}: {run} is of {written.training.max_steps} updates; ask for more")
    done = run / DONE_FILE
    if done.exists() and (ended := TrainedRun.read(done).steps) < (asked := written.training.max_steps):
        raise UserError(
            f"{run}: ended after {ended} of {asked} updates, as its patience or min_lr says, and would end there "
            "again: give its system more patience, with which the workflow goes on from here, or train it anew"
        )
    spec = with_length(written, steps, written.training.patience)
    folder = beside(run, spec)
    if not (folder / RUN_FILE).exists():
        with atomic_write(folder / RUN_FILE) as handle:
            yaml.safe_dump(spec.model_dump(), handle, sort_keys=False)
    checkpoints = Checkpoints(folder, run_key(folder), spec.training.keep_checkpoints)
    if not checkpoints.has_begun and continue_from(checkpoints, run, other_schedule=depends_on_length(spec)) is None:
        raise UserError(
            f"{run}: has no checkpoint to go on from (`free` removes the last with the others); to train {folder} "
            f"from the start: python -m pipeline train --run {folder}"
        )
    log.info("%s: %d updates", folder, steps)
    if not prepare:
        train_owned(folder, options)


def beside(shorter: Path, spec: RunSpec) -> Path:
    """The folder of a run like `shorter`, whose folder's name says what its data are."""
    folders = [Path(spec.corpus).parent, *map(Path, spec.weight_sources.values()), shorter.absolute()]
    contents = [folder.name.rpartition("-")[2] for folder in folders]
    if any(len(content) != DIGITS for content in contents):
        raise UserError(f"{shorter}: is not in a store of runs; its folder's name lacks what it is made of")
    corpus, *others, _ = contents
    return shorter.with_name(f"{shorter.absolute().name[: -DIGITS - 1]}-{run_content(spec, corpus, others)}")
