"""Average the last k checkpoints of a run (Attention Is All You Need, section 6.1: 5 for base, 20 for big).

    python -m pipeline average --run work/demo/runs/attention/base/grammar-en-de/seed1-… --last 5 \\
        --out work/demo/runs/attention/base/grammar-en-de/seed1-…/averaged/last5.safetensors

Writes averaged/last5.safetensors, and averaged/last5.json: {key, digest, inputs: [{file, step, digest}]}.
With --last 1 these are the final weights. With --best 5, of the checkpoints kept, those of lowest development loss.
"""

import argparse
import itertools
import logging
from pathlib import Path
from typing import Any

from torch import Tensor

from pipeline.config import load_run
from pipeline.core.errors import REPAIR, UserError
from pipeline.core.layout import DONE_FILE, PROGRESS_FILE, RUN_FILE, WEIGHTS_FILE
from pipeline.core.records.outputs import Averaged, AveragedFile
from pipeline.core.records.record import read_lines_as
from pipeline.core.records.training import AnyProgress, TrainedRun, ValidationLine
from pipeline.training.checkpoint_files import read_metadata, weight_files
from pipeline.training.specification import run_key
from pipeline.training.tensor_file import read_weights, write_tensor_file

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", dest="run_folder", type=Path, required=True, help="folder of a finished run")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--last", type=int, metavar="K", help="checkpoints averaged; 1: final weights")
    which.add_argument("--best", type=int, metavar="K", help="checkpoints averaged: those of lowest development loss")
    parser.add_argument("--out", type=Path, required=True, help="a .safetensors file")


def run(args: argparse.Namespace) -> None:
    best = args.best is not None
    write_average(args.run_folder, args.best if best else args.last, best, args.out)


def write_average(run_folder: Path, count: int, best: bool, out: Path) -> None:
    """Average checkpoints of a run into `out`, and write a record of them beside it. Raises UserError as `inputs`."""
    key = run_key(run_folder)
    paths = inputs(run_folder, count, key, best)
    mean, facts = average(paths, key)
    write_tensor_file(out, mean, {"key": key, "step": facts[-1]["step"], "averaged": len(paths)})
    listed = [
        AveragedFile(file=path.name, step=one["step"], digest=one["digest"])
        for path, one in zip(paths, facts, strict=True)
    ]
    averaged = Averaged(key=key, digest=read_metadata(out)["digest"], inputs=listed)
    averaged.write(out.with_suffix(".json"))
    log.info("%s: mean of steps %s", out, ", ".join(str(one["step"]) for one in facts))


def inputs(run_folder: Path, count: int, key: str, best: bool = False) -> list[Path]:
    """The files to average, oldest first: the last, or the best of all that are kept.

    Raises:
        UserError: the run is not finished, kept fewer checkpoints, or lacks one among them.
    """
    if count < 1:
        raise UserError(f"the number of checkpoints must be at least 1, got {count}")
    done = TrainedRun.read_if_there(run_folder / DONE_FILE)
    if done is None or done.key != key:
        raise UserError(f"{run_folder}: training is not finished; {REPAIR}")
    if count == 1 and not best:
        return [run_folder / WEIGHTS_FILE]
    found = weight_files(run_folder)
    if len(found) < count:
        raise UserError(
            f"{run_folder}/checkpoints: {len(found)} checkpoints, {count} are to be averaged; lower "
            "decoding.average_last, or raise training.keep_checkpoints or lower training.checkpoint_every"
        )
    if found[-1][0] != done.steps:
        raise UserError(
            f"{run_folder}/checkpoints: the newest is of step {found[-1][0]}, but the run ended at step "
            f"{done.steps}; was a file removed? {REPAIR}"
        )
    kept = found if best else found[-count:]
    steps = [step for step, _ in kept]
    every = load_run(run_folder / RUN_FILE).training.checkpoint_every
    given_up_after = done.returned.to if done.returned else None  # what followed led astray, and was removed
    gaps = [earlier for earlier, later in itertools.pairwise(steps) if later - earlier > every]
    if gaps not in ([], [given_up_after]):
        raise UserError(f"{run_folder}/checkpoints: one between steps {steps} is missing; {REPAIR}")
    return [path for step, path in kept if not best or step in best_steps(run_folder, steps, count)]


def best_steps(run_folder: Path, steps: list[int], count: int) -> list[int]:
    """Those of lowest development loss, of equals the earlier. Raises UserError when one was never validated."""
    lines = read_lines_as(AnyProgress, run_folder / PROGRESS_FILE, TrainedRun.remedy)
    losses = {line.step: line.dev.nll_per_token for line in lines if isinstance(line, ValidationLine)}
    if unknown := [step for step in steps if step not in losses]:
        raise UserError(
            f"{run_folder}: of the checkpoint after {unknown[0]} updates no development loss is known; make "
            "training.checkpoint_every a multiple of validate_every"
        )
    return sorted(steps, key=losses.__getitem__)[:count]


def average(paths: list[Path], key: str) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
    """The arithmetic mean of the tensors of `paths`, and the facts of each file. One file is in memory at a time.

    Sums are float64; tensors that are not floating-point must agree.

    Raises:
        UserError: a file is damaged, is of another run than `key`, or holds other tensors than the first.
    """
    sums: dict[str, Tensor] = {}
    all_facts = []
    for path in paths:
        tensors, facts = read_weights(path, key, REPAIR)
        if sums and {name: one.shape for name, one in sums.items()} != {n: one.shape for n, one in tensors.items()}:
            raise UserError(f"{path}: holds other tensors than {paths[0]}; train the run again")
        for name, tensor in tensors.items():
            sums[name] = sums[name] + tensor.double() if name in sums else tensor.double()
        all_facts.append({**facts, "digest": read_metadata(path)["digest"]})
    return {name: (total / len(paths)).to(tensors[name].dtype) for name, total in sums.items()}, all_facts
