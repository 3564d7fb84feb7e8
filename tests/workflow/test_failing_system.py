"""A failed training costs no other score and no table: its row gives the cause, and a repaired run is rebuilt."""

import csv

import pytest
from copied_project import add_toy_paper, call, copy_project, jobs, require

from pipeline.core.artifacts import Table
from pipeline.papers.project import load_project
from pipeline.workflow.graph import Graph, runs_in

TABLE = Table("toy", "table1")


@pytest.mark.slow
def test_table_is_partial_while_a_training_fails_then_complete(tmp_path):
    folder = add_toy_paper(copy_project(tmp_path))
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
