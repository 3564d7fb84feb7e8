"""The command `continue`: train a run longer, from its last checkpoint, as another run beside it."""

import logging
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import yaml

from pipeline.config import RunSpec, run_folder_above
from pipeline.core.command_line import Argument
from pipeline.core.cores import usable_cores
from pipeline.core.errors import UserError, count_of
from pipeline.core.files import atomic_write
from pipeline.core.layout import COST_FILE, DONE_FILE, RUN_FILE
from pipeline.core.records.training import TrainedRun, TrainingCost
from pipeline.core.schema import load_yaml_as
from pipeline.core.yaml_file import LARGEST
from pipeline.papers.config_file import parse_settings
from pipeline.papers.content import DIGITS, run_content
from pipeline.papers.project import Settings
from pipeline.training.specification import MachineOptions, run_key
from reprise.find_runs import find_run

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

    A run that used no GPU keeps its number of threads, if this machine has as many cores; --threads overrides this.
    The longer run gets its own folder. The workflow finds it once `max_steps` is set to this number. If the schedule
    does not depend on the length, its weights equal those of a training that was as long from the start, byte for byte.
    If it does (branch_freeze_steps, `schedule: cosine`), `done.json` names the run it continues.

    Args:
        name: Run as paper/system/dataset/seed, or its folder.
        steps: Training steps in all.
        prepare: Only prepare the run; the workflow trains it.
        options: Device, threads and checkpoint interval.
        settings: Override a key of config.yaml. May be given several times.
    """
    folder = run_folder_above(Path(name)) or find_run(name, parse_settings(settings)).folder
    train_longer(folder, steps, prepare, options)


def train_longer(run: Path, steps: int, prepare: bool, options: MachineOptions) -> None:
    """Prepare the longer run beside another one, and train it.

    Args:
        run: Folder of the shorter run.
        steps: Training steps in all.
        prepare: Only prepare the longer run.
        options: Device, threads and checkpoint interval.

    Raises:
        UserError: This machine lacks the device or threads, or the run cannot be continued.
    """
    from pipeline.training.distributed import Group  # loads torch, as the others do
    from pipeline.training.job import train_owned
    from pipeline.training.machine import choose_device, choose_threads

    if not prepare:  # fail before anything is written
        choose_threads(options.threads)
        choose_device(options.device, Group.from_environment().local_rank)
    folder = prepare_longer(run, steps)
    log.info("%s: %d steps", folder, steps)
    if not prepare:
        train_owned(folder, with_threads_of(run, options))


def prepare_longer(run: Path, steps: int) -> Path:
    """Return the folder of the longer run of `steps`, with the settings and last checkpoint of the shorter `run`.

    Raises:
        UserError: The run is not shorter, stopped early, or has no checkpoint.
    """
    from pipeline.training.checkpoint import Checkpoints  # loads torch
    from pipeline.training.warm_start import continue_from, depends_on_length, with_length

    shorter: RunSpec = load_yaml_as(RunSpec, run / RUN_FILE)
    require_shorter(run, shorter.training.max_steps, steps)
    spec = with_length(shorter, steps, shorter.training.patience)
    folder = longer_folder(run, spec)
    if not (folder / RUN_FILE).exists():
        with atomic_write(folder / RUN_FILE) as handle:
            yaml.safe_dump(spec.model_dump(), handle, sort_keys=False)
    checkpoints = Checkpoints(folder, run_key(folder), spec.training.keep_checkpoints)
    if not checkpoints.has_begun and continue_from(checkpoints, run, other_schedule=depends_on_length(spec)) is None:
        raise UserError(
            f"{run}: has no checkpoint to resume from (`free` removes them); to train from the start, "
            f"run `python -m pipeline train --run {shlex.quote(str(folder))}`"
        )
    return folder


def require_shorter(run: Path, max_steps: int, steps: int) -> None:
    """Check that a `run` of `max_steps` is shorter than `steps`, and would not stop before them.

    Raises:
        UserError: The run is not shorter, or stopped early.
    """
    if steps >= LARGEST:
        raise UserError(f"--steps {steps}: too large; must be below {LARGEST}")
    if steps <= max_steps:
        raise UserError(f"--steps {steps}: {run} has {count_of(max_steps, 'step')}; ask for more")
    done = run / DONE_FILE
    if done.exists() and (ended := TrainedRun.read(done).steps) < max_steps:
        raise UserError(
            f"{run}: stopped early after {ended} of {max_steps} steps (patience or min_lr), and would stop there "
            "again; increase the patience of its system: the workflow then resumes from here"
        )


def with_threads_of(run: Path, options: MachineOptions) -> MachineOptions:
    """Return options with the threads of a run's last start, because another number changes the rounding of weights.

    Args:
        run: Folder of the run.
        options: Options for this machine. Their threads stay if they are set, or if the run used a GPU or more cores
            than this machine has.
    """
    cost = TrainingCost.read_if_valid(run / COST_FILE)
    if options.threads is not None or cost is None:
        return options
    last = cost.starts[-1]
    usable = not last.gpu_hours and last.threads <= usable_cores()
    return replace(options, threads=last.threads if usable else None)


def longer_folder(shorter: Path, spec: RunSpec) -> Path:
    """Return the folder of the longer run, beside the `shorter` one; its name contains the digest of its data.

    Raises:
        UserError: The name of the folder of a run or corpus does not end in a digest.
    """
    folders = [Path(spec.corpus).parent, *map(Path, spec.weight_sources.values()), shorter.absolute()]
    contents = [folder.name.rpartition("-")[2] for folder in folders]
    if any(len(content) != DIGITS for content in contents):
        raise UserError(f"{shorter}: is not in a store of runs: its folder's name does not end in a digest")
    corpus, *others, _ = contents
    return shorter.with_name(f"{shorter.absolute().name[: -DIGITS - 1]}-{run_content(spec, corpus, others)}")
