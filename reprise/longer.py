"""Train a run for more updates than it was: from its last checkpoint, as another run beside it.

    python -m pipeline continue --run work/demo/runs/weighted/C/grammar-en-de/seed1-… --steps 4000

With as many threads as the run had, unless --threads says otherwise. The new run lies where the workflow looks for one
of so many updates, so that it finds it once `max_steps` says so. Its weights have the bytes of a training that was as
long from the start, where the schedule does not depend on the length; where it does (branch_freeze_steps), `done.json`
says which run it went on from.
"""

import argparse
import logging
import os
from pathlib import Path

import yaml

from pipeline.config import RunSpec
from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write
from pipeline.core.layout import COST_FILE, DONE_FILE, RUN_FILE
from pipeline.core.records.record import read_note
from pipeline.core.records.training import TrainedRun, TrainingCost
from pipeline.core.schema import load_yaml, validate
from pipeline.core.yaml_file import LARGEST
from pipeline.papers.content import DIGITS, run_content
from pipeline.training.arguments import add_machine_arguments

log = logging.getLogger(__name__)
THREADS = "those of the run, where it had no GPU and as many cores are here"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", type=Path, required=True, help="folder of the shorter run")
    add_length_arguments(parser)
    add_machine_arguments(parser, THREADS)


def add_length_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=int, required=True, help="updates in all")
    parser.add_argument("--prepare", action="store_true", help="train nothing: the workflow will")


def run(args: argparse.Namespace) -> None:
    from pipeline.training.checkpoint import Checkpoints  # brings torch, as the others do
    from pipeline.training.distributed import Group
    from pipeline.training.job import train_held
    from pipeline.training.key import run_key
    from pipeline.training.machine import choose_device, choose_threads
    from pipeline.training.neighbours import depends_on_length, of_length, take_up

    if not args.prepare:  # what can't be trained here is begun nowhere
        choose_threads(args.threads)
        choose_device(args.device, Group.from_environment().local_rank)
    if args.threads is None and (cost := read_note(TrainingCost, args.run / COST_FILE)):
        last = cost.starts[-1]  # by another number of threads weights are the same within rounding only
        args.threads = last.threads if not last.gpu_hours and last.threads <= len(os.sched_getaffinity(0)) else None
    if args.steps >= LARGEST:
        raise UserError(f"--steps {args.steps}: no training has so many updates")
    written: RunSpec = validate(RunSpec, load_yaml(args.run / RUN_FILE), str(args.run / RUN_FILE))
    if args.steps <= written.training.max_steps:
        raise UserError(f"--steps {args.steps}: {args.run} is of {written.training.max_steps} updates; ask for more")
    done = args.run / DONE_FILE
    if done.exists() and (ended := TrainedRun.read(done).steps) < (asked := written.training.max_steps):
        raise UserError(
            f"{args.run}: ended after {ended} of {asked} updates, as its patience or min_lr says, and would end there "
            "again: give its system more patience, with which the workflow goes on from here, or train it anew"
        )
    spec = of_length(written, args.steps, written.training.patience)
    folder = beside(args.run, spec)
    if not (folder / RUN_FILE).exists():
        with atomic_write(folder / RUN_FILE) as handle:
            yaml.safe_dump(spec.model_dump(), handle, sort_keys=False)
    checkpoints = Checkpoints(folder, run_key(folder), spec.training.keep_checkpoints)
    if not checkpoints.has_any and take_up(checkpoints, args.run, continued=depends_on_length(spec)) is None:
        raise UserError(
            f"{args.run}: has no checkpoint to go on from (`free` removes the last with the others); to train {folder} "
            f"from the start: python -m pipeline train --run {folder}"
        )
    log.info("%s: %d updates", folder, args.steps)
    if not args.prepare:
        train_held(folder, args)


def beside(shorter: Path, spec: RunSpec) -> Path:
    """The folder of a run like `shorter`, whose folder's name says what its data are."""
    folders = [Path(spec.corpus).parent, *map(Path, spec.taken.values()), shorter.absolute()]
    contents = [folder.name.rpartition("-")[2] for folder in folders]
    if any(len(content) != DIGITS for content in contents):
        raise UserError(f"{shorter}: is not in a store of runs; its folder's name lacks what it is made of")
    corpus, *others, _ = contents
    return shorter.with_name(f"{shorter.absolute().name[: -DIGITS - 1]}-{run_content(spec, corpus, others)}")
