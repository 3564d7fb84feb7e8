"""Average of the last checkpoints of a run (Attention Is All You Need, section 6.1: 5 for base, 20 for big)."""

import itertools
import logging
from pathlib import Path
from typing import Any

from torch import Tensor

from pipeline.config import load_run
from pipeline.core.errors import REPAIR, UserError, count_of
from pipeline.core.layout import DONE_FILE, PROGRESS_FILE, RUN_FILE
from pipeline.core.records.outputs import AveragedFile, AveragedWeights
from pipeline.core.records.record import read_lines_as
from pipeline.core.records.training import AnyProgress, TrainedRun, ValidationLine
from pipeline.training.checkpoint_files import read_metadata, weight_files
from pipeline.training.specification import run_key
from pipeline.training.tensor_file import read_weights, write_tensor_file

log = logging.getLogger(__name__)


def write_average(run_folder: Path, count: int, best: bool, out: Path) -> None:
    """Average checkpoints of a run, and write the mean and a record of its inputs.

    Write averaged/last5.safetensors, and averaged/last5.json: {key, digest, inputs: [{file, step, digest}]}.

    Args:
        run_folder: Folder of a finished run.
        count: Number of checkpoints.
        best: Take those of lowest development loss instead of the last.
        out: The .safetensors file to write; the record is the .json file beside it.

    Raises:
        UserError: See `select_checkpoints`; or a file is damaged.
    """
    key = run_key(run_folder)
    paths = select_checkpoints(run_folder, count, key, best)
    mean, metadata = average(paths, key)
    write_tensor_file(out, mean, {"key": key, "step": metadata[-1]["step"], "averaged": len(paths)})
    listed = [
        AveragedFile(file=path.name, step=header["step"], digest=header["digest"])
        for path, header in zip(paths, metadata, strict=True)
    ]
    averaged = AveragedWeights(key=key, digest=read_metadata(out)["digest"], inputs=listed)
    averaged.write(out.with_suffix(".json"))
    log.info("%s: mean of steps %s", out, ", ".join(str(header["step"]) for header in metadata))


def select_checkpoints(run_folder: Path, count: int, key: str, best: bool) -> list[Path]:
    """Return the weight files to average, oldest checkpoint first.

    Args:
        run_folder: Folder of a run.
        count: Number of checkpoints.
        key: Key of the run, which its training must have finished with.
        best: Take the checkpoints of lowest development loss among all that are kept, instead of the last.

    Raises:
        UserError: The run is not finished, kept fewer checkpoints, or lacks one among them.
    """
    if count < 1:
        raise UserError(f"the number of checkpoints must be at least 1, got {count}")
    done = TrainedRun.read_if_there(run_folder / DONE_FILE)
    if done is None or done.key != key:
        raise UserError(f"{run_folder}: training is not finished; {REPAIR}")
    found = weight_files(run_folder)
    if len(found) < count:
        raise UserError(
            f"{run_folder}/checkpoints: has {count_of(len(found), 'checkpoint')}, but {count} should be averaged; "
            "lower decoding.average_last, or raise training.keep_checkpoints or lower training.checkpoint_every"
        )
    if found[-1][0] != done.steps:
        raise UserError(
            f"{run_folder}/checkpoints: the newest is of step {found[-1][0]}, but the run ended at step "
            f"{done.steps}; was a file removed? {REPAIR}"
        )
    kept = found if best else found[-count:]
    steps = [step for step, _ in kept]
    every = load_run(run_folder / RUN_FILE).training.checkpoint_every
    given_up_after = done.returned.to if done.returned else None  # later ones were removed by a roll-back
    gaps = [earlier for earlier, later in itertools.pairwise(steps) if later - earlier > every]
    if gaps not in ([], [given_up_after]):
        raise UserError(f"{run_folder}/checkpoints: a checkpoint between steps {steps} is missing; {REPAIR}")
    chosen = best_steps(run_folder, steps, count) if best else steps
    return [path for step, path in kept if step in chosen]


def best_steps(run_folder: Path, steps: list[int], count: int) -> list[int]:
    """Return the steps of lowest development loss, lowest first; ties go to the earlier one.

    Args:
        run_folder: Folder of the run, which holds its progress log.
        steps: Steps to choose from, ascending.
        count: Number of steps.

    Raises:
        UserError: A checkpoint was never validated.
    """
    lines = read_lines_as(AnyProgress, run_folder / PROGRESS_FILE, TrainedRun.remedy)
    losses = {line.step: line.dev.nll_per_token for line in lines if isinstance(line, ValidationLine)}
    if unknown := [step for step in steps if step not in losses]:
        raise UserError(
            f"{run_folder}: the checkpoint after step {unknown[0]} has no development loss; make "
            "training.checkpoint_every a multiple of validate_every"
        )
    return sorted(steps, key=losses.__getitem__)[:count]


def average(paths: list[Path], key: str) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
    """Average the tensors of several files.

    Sums are in float64. One file is in memory at a time.

    Args:
        paths: Weight files of one run.
        key: Key of the run that wrote them.

    Returns:
        Means of any shape by name, in the dtype of the files; and the metadata of each file.

    Raises:
        UserError: A file is damaged, is of another run than `key`, or holds other tensors than the first.
    """
    sums: dict[str, Tensor] = {}
    all_metadata = []
    for path in paths:
        tensors, metadata = read_weights(path, key, REPAIR)
        if sums and {name: tensor.shape for name, tensor in sums.items()} != {
            n: tensor.shape for n, tensor in tensors.items()
        }:
            raise UserError(f"{path}: holds other tensors than {paths[0]}; train the run again")
        for name, tensor in tensors.items():
            sums[name] = sums[name] + tensor.double() if name in sums else tensor.double()
        all_metadata.append({**metadata, "digest": read_metadata(path)["digest"]})
    return {name: (total / len(paths)).to(tensors[name].dtype) for name, total in sums.items()}, all_metadata
