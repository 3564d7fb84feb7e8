"""A copy of the project whose papers and datasets a test may add to, and Snakemake run in it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml
from warm import warm_programs

from pipeline.core.provenance import ROOT

WARM = ("python", "reprise", "snakemake", "timeout")
"""Programs that the warm server runs, or that run one of them."""
COPIED, LINKED = ("workflow", "Snakefile", "config.yaml"), ("pipeline", "reprise", "profiles", "slurm", "bench")

TOY_PAPER = """\
title: A toy
authors: Nobody
year: 2026
arxiv: none
systems:
  base: {base: attention/base, description: the base model}
decodings:
  final: {base: attention/final}
tables:
  table1:
    caption: BLEU of a toy.
    printed: table1.csv
    label: [model]
    cells:
      bleu: {printed: bleu, metric: sacrebleu, dataset: wmt14-en-de, split: test, decoding: final}
"""
TOY_TABLE = "model,bleu,system,source\nBase,20.0,base,ours-to-run\n"


def copy_project(folder: Path) -> Path:
    """The project in `folder`, without anything that was made: rules and data copied, code as it is here."""
    for name in COPIED:
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, folder / name)
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    return folder


STEPS = ("max_steps", "warmup_steps", "branch_warmup_steps", "branch_freeze_steps", "checkpoint_every")
LINES = {"train": 600, "dev": 20, "test": 20}


def shrink(root: Path, kept: str = "") -> Path:
    """Cut the trainings of scale smoke to a tenth of their steps, and its translated grammar corpora to a few lines.

    Runs keep the number of their checkpoints and reports their rows; only the numbers differ. Each is validated once.

    Args:
        root: A copied project.
        kept: System that keeps its steps, with those that are based on it.
    """
    path = root / "workflow/scales/smoke.yaml"
    scale = json.loads(json.dumps(yaml.safe_load(path.read_text())))  # systems that share settings get copies
    for part in (scale, *(rules for name, rules in scale["systems"].items() if name != kept)):
        for name, change in part.get("training", {}).items():
            if name in STEPS:
                shorten(change)
    path.write_text(yaml.safe_dump(scale))
    for path in (root / "workflow/datasets").glob("grammar-smoke-*.yaml"):
        dataset = yaml.safe_load(path.read_text())
        if dataset["kind"] == "grammar":
            sizes = {split: LINES.get(split, 10) for split in dataset["generator"]["sizes"]}
            dataset["generator"]["sizes"] = sizes
            dataset["expected"] = {split: {"lines": lines} for split, lines in sizes.items()}
            path.write_text(yaml.safe_dump(dataset))
    return root


def shorten(change: dict[str, int]) -> None:
    """Change what a scale does with a number of steps: a tenth is left."""
    if "set" in change:
        change["set"] = max(1, change["set"] // 10)
    else:
        change["divide"] *= 10


def add_toy_paper(root: Path) -> Path:
    """A paper of one system and one table; returns its folder."""
    folder = root / "workflow/papers/toy"
    folder.mkdir()
    (folder / "paper.yaml").write_text(TOY_PAPER)
    (folder / "table1.csv").write_text(TOY_TABLE)
    return folder


def call(root: Path, *command: str, **variables: str) -> subprocess.CompletedProcess:
    """Run a command in the root of a copy, with this environment's programs first.

    Its interpreters are forked from a warm server, unless a program such as `unshare` runs the command.

    Args:
        root: Folder to run it in.
        command: Program and arguments; `python` is this interpreter.
        variables: Added to the environment.
    """
    environment = environment_of(root, is_warm=command[0] in WARM, **variables)
    return subprocess.run(command, cwd=root, capture_output=True, text=True, env=environment, check=False)


def environment_of(root: Path, is_warm: bool = True, **variables: str) -> dict[str, str]:
    """Return the environment of a command in the root of a copy; if warm, a server with the copy's code forks it."""
    folders = [Path(sys.executable).parent]
    if is_warm and (code := root / "pipeline").exists():
        folders.insert(0, warm_programs(code.resolve().parent))
    environment = {key: value for key, value in os.environ.items() if key != "SNAKEMAKE_PROFILE"} | variables
    path = os.pathsep.join([*map(str, folders), environment["PATH"]])
    return environment | {"PATH": path, "PYTHONPATH": str(root)}


def require(done: subprocess.CompletedProcess) -> str:
    """Its output. Raises AssertionError with it when the command failed."""
    output = done.stdout + done.stderr
    assert done.returncode == 0, f"{done.args}\n{output[-4000:]}"
    assert "Traceback" not in output, output
    return output


def jobs(output: str) -> dict[str, int]:
    """Jobs by rule of a dry run."""
    rows = (line.split() for line in output.split("\n"))
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdecimal()}
