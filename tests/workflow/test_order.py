"""Order in which trainings begin."""

import re

import pytest
from copied_project import add_toy_paper, call, copy_project

from pipeline.core.artifacts import Table
from pipeline.papers.project import load_project
from pipeline.workflow.graph import Graph, runs_in

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
    folder = add_toy_paper(copy_project(tmp_path))
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
