"""A paper of a few systems: failed and longest trainings, and a changed decoding."""

import csv
import re
from pathlib import Path

import pytest
from copied_project import add_toy_paper, call, copy_project, jobs, require, shrink

from pipeline.core.artifacts import Outputs, RunId, Table, Trained
from pipeline.papers.project import Project, load_project
from pipeline.workflow.graph import Graph, runs_in

pytestmark = pytest.mark.slow

TABLE = Table("toy", "table1")
OTHER = "  other: {base: attention/base, description: another, training: {label_smoothing: 0.2}}\n"
SYSTEMS = """\
  a-short: {base: attention/base, description: as long as others, training: {max_steps: 50000}}
  b-long: {base: attention/base, description: with the most updates, training: {max_steps: 100000}}
  c-wide:
    base: attention/base
    description: with the most operations
    model: {d_model: 2048, d_ff: 8192}
    training: {max_steps: 40000}
"""


def toy_project(root: Path, systems: str, *names: str) -> tuple[Project, list[RunId]]:
    """Copy the project with a paper that has more systems; return it and the runs of a table of some of them."""
    folder = add_toy_paper(shrink(copy_project(root)))
    paper = folder / "paper.yaml"
    paper.write_text(paper.read_text().replace("systems:\n", f"systems:\n{systems}"))
    rows = (f"{name},20.0,{name},ours-to-run\n" for name in names)
    (folder / "table1.csv").write_text("model,bleu,system,source\n" + "".join(rows))
    project = load_project(root, {"scale": "smoke"})
    return project, sorted(runs_in(Graph(project).closure([TABLE])), key=lambda run: run.system)


def obstruct(root: Path, project: Project, run: RunId) -> Path:
    """Put a file where a training makes a folder, so that it fails at once."""
    obstacle = root / project.layout.run(run) / "checkpoints"
    obstacle.parent.mkdir(parents=True)
    obstacle.touch()
    return obstacle


def make(root: Path, *arguments: str, target: str | Path = "toy"):
    return call(root, "snakemake", *arguments, "--config", "scale=smoke", "--", str(target))


def test_table_is_partial_while_a_training_fails_then_complete(tmp_path):
    project, (_, broken) = toy_project(tmp_path, OTHER, "base", "other")
    obstacle = obstruct(tmp_path, project, broken)

    def rows():
        with open(tmp_path / project.layout.path(TABLE), newline="") as file:
            return {row["model"]: row for row in csv.DictReader(file)}

    done = make(tmp_path, "--cores", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    found = rows()
    assert found["base"]["status"] == "run" and float(found["base"]["bleu_ours"]) >= 0
    assert found["other"]["status"].startswith("failed: ") and "checkpoints" in found["other"]["status"]
    *_, summary, last = done.stderr.splitlines()
    assert summary == "reports: 1 incomplete; trainings: 1 done, 1 failed"
    assert last.startswith("error: ") and "/toy/other/" in last
    assert {"train", "table"} <= set(jobs(require(make(tmp_path, "-n"))))
    obstacle.unlink()
    require(make(tmp_path, "--cores", "2"))
    assert {row["status"] for row in rows().values()} == {"run"}
    assert jobs(require(make(tmp_path, "-n"))) == {}


def test_training_with_the_most_flops_starts_first(tmp_path):
    project, runs = toy_project(tmp_path, SYSTEMS, "a-short", "b-long", "c-wide")
    for run in runs:  # none of them takes longer than to fail
        obstruct(tmp_path, project, run)
    done = make(tmp_path, "--cores", "1")
    begun = re.findall(r"^Job \d+: train: toy/([\w-]+)", done.stdout + done.stderr, re.MULTILINE)
    assert begun == ["c-wide", "b-long", "a-short"]


@pytest.mark.parametrize("is_decoded", [False, True], ids=["train alone", "train and decode"])
def test_changed_decoding_is_redone_without_training(tmp_path, is_decoded):
    """Even if the training job made the outputs and no `decode` job ran."""
    project, (run,) = toy_project(tmp_path, "", "base")
    outputs = project.layout.path(Outputs(run, "final"))
    require(make(tmp_path, "-j1", target=outputs if is_decoded else project.layout.path(Trained(run))))
    assert list((tmp_path / project.layout.run(run)).glob("translations/final/*.tok")), "the training job decodes"
    paper = tmp_path / "workflow/papers/toy/paper.yaml"
    paper.write_text(paper.read_text().replace("{base: attention/final}", "{base: attention/final, beam_size: 3}"))
    planned = jobs(require(make(tmp_path, "-n", target=outputs)))
    assert planned.get("decode") == 1 and "train" not in planned
    require(make(tmp_path, "-j1", target=outputs))
    assert jobs(require(make(tmp_path, "-n", target=outputs))) == {}
