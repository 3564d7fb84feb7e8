"""Trainings: the longest start first, and a failed one costs no other score and no table."""

import csv
import re

import pytest
from copied_project import add_toy_paper, call, copy_project, jobs, require, shrink

from pipeline.core.artifacts import Table
from pipeline.papers.project import load_project
from pipeline.workflow.graph import Graph, runs_in

TABLE = Table("toy", "table1")


@pytest.mark.slow
def test_table_is_partial_while_a_training_fails_then_complete(tmp_path):
    folder = add_toy_paper(shrink(copy_project(tmp_path)))
    paper = folder / "paper.yaml"
    other = "systems:\n  other: {base: attention/base, description: another, training: {label_smoothing: 0.2}}\n"
    paper.write_text(paper.read_text().replace("systems:\n", other))
    (folder / "table1.csv").write_text(
        "model,bleu,system,source\nBase,20.0,base,ours-to-run\nO,20.0,other,ours-to-run\n"
    )
    project = load_project(tmp_path, {"scale": "smoke"})
    _, broken = sorted(runs_in(Graph(project).closure([TABLE])), key=lambda run: run.system)
    obstacle = tmp_path / project.layout.run(broken) / "checkpoints"
    obstacle.parent.mkdir(parents=True)
    obstacle.touch()

    def rows():
        with open(tmp_path / project.layout.path(TABLE), newline="") as file:
            return {row["model"]: row for row in csv.DictReader(file)}

    def make(*arguments):
        return call(tmp_path, "snakemake", *arguments, "--config", "scale=smoke", "--", "toy")

    done = make("--cores", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    found = rows()
    assert found["Base"]["status"] == "run" and float(found["Base"]["bleu_ours"]) >= 0
    assert found["O"]["status"].startswith("failed: ") and "checkpoints" in found["O"]["status"]
    *_, summary, last = done.stderr.splitlines()
    assert summary == "reports: 1 incomplete; trainings: 1 done, 1 failed"
    assert last.startswith("error: ") and "/toy/other/" in last
    assert {"train", "table"} <= set(jobs(require(make("-n"))))
    obstacle.unlink()
    require(make("--cores", "2"))
    assert {row["status"] for row in rows().values()} == {"run"}
    assert jobs(require(make("-n"))) == {}


SYSTEMS = """\
systems:
  a-short: {base: attention/base, description: as long as others, training: {max_steps: 50000}}
  b-long: {base: attention/base, description: with the most updates, training: {max_steps: 100000}}
  c-wide:
    base: attention/base
    description: with the most operations
    model: {d_model: 2048, d_ff: 8192}
    training: {max_steps: 40000}
"""


@pytest.mark.slow
def test_training_with_the_most_flops_starts_first(tmp_path):
    folder = add_toy_paper(shrink(copy_project(tmp_path)))
    paper = folder / "paper.yaml"
    paper.write_text(paper.read_text().replace("systems:\n", SYSTEMS))
    rows = (f"{name},20.0,{name},ours-to-run\n" for name in ("a-short", "b-long", "c-wide"))
    (folder / "table1.csv").write_text("model,bleu,system,source\n" + "".join(rows))
    project = load_project(tmp_path, {"scale": "smoke"})
    for run in runs_in(Graph(project).closure([Table("toy", "table1")])):  # none of them takes longer than to fail
        obstacle = tmp_path / project.layout.run(run) / "checkpoints"
        obstacle.parent.mkdir(parents=True)
        obstacle.touch()
    done = call(tmp_path, "snakemake", "--cores", "1", "--config", "scale=smoke", "--", "toy")
    begun = re.findall(r"^Job \d+: train: toy/([\w-]+)", done.stdout + done.stderr, re.MULTILINE)
    assert begun == ["c-wide", "b-long", "a-short"]
