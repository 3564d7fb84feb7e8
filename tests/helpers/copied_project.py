"""A copy of the project whose papers and datasets a test may add to, and Snakemake run in it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from warm import warm_programs

ROOT = Path(__file__).resolve().parents[2]
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


def add_toy_paper(root: Path) -> Path:
    """A paper of one system and one table; returns its folder."""
    folder = root / "workflow/papers/toy"
    folder.mkdir()
    (folder / "paper.yaml").write_text(TOY_PAPER)
    (folder / "table1.csv").write_text(TOY_TABLE)
    return folder


def call(root: Path, *command: str, **variables: str) -> subprocess.CompletedProcess:
    """Run a command in the root of a copy, with this environment's programs first.

    Its interpreters are forked from the warm server, unless the copy has code of its own, or another program such as
    `unshare` runs the command.

    Args:
        root: Folder to run it in.
        command: Program and arguments; `python` is this interpreter.
        variables: Added to the environment.
    """
    code = root / "pipeline"
    known = command[0] in ("python", "reprise", "snakemake") and code.exists() and code.samefile(ROOT / "pipeline")
    folders = [*([warm_programs()] if known else []), Path(sys.executable).parent]
    environment = {key: value for key, value in os.environ.items() if key != "SNAKEMAKE_PROFILE"} | variables
    environment |= {"PATH": os.pathsep.join([*map(str, folders), environment["PATH"]]), "PYTHONPATH": str(root)}
    return subprocess.run(command, cwd=root, capture_output=True, text=True, env=environment, check=False)


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
