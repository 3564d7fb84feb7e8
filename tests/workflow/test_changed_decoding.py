"""A changed decoding is redone, even if the training job made its outputs and no `decode` job ran."""

import pytest
from copied_project import add_toy_paper, call, copy_project, jobs, require, shrink

from pipeline.core.artifacts import Outputs, Trained
from pipeline.papers.project import load_project
from pipeline.workflow.graph import Graph, runs_in


@pytest.mark.slow
@pytest.mark.parametrize("is_decoded", [False, True], ids=["train alone", "train and decode"])
def test_changed_decoding_is_redone_without_training(tmp_path, is_decoded):
    folder = add_toy_paper(shrink(copy_project(tmp_path)))
    project = load_project(tmp_path, {"scale": "smoke"})
    (run,) = runs_in(Graph(project).closure(Graph(project).reports(["toy"])))
    trained, outputs = Trained(run), Outputs(run, "final")

    def snakemake(*arguments, of=outputs):
        command = ("snakemake", "--cores", "1", *arguments, "--config", "scale=smoke", "--")
        return require(call(tmp_path, *command, str(project.layout.path(of))))

    snakemake(of=outputs if is_decoded else trained)
    assert list((tmp_path / project.layout.run(run)).glob("translations/final/*.tok")), "the training job decodes"
    paper = folder / "paper.yaml"
    paper.write_text(paper.read_text().replace("{base: attention/final}", "{base: attention/final, beam_size: 3}"))
    planned = jobs(snakemake("-n"))
    assert planned.get("decode") == 1 and "train" not in planned
    snakemake()
    assert jobs(snakemake("-n")) == {}
