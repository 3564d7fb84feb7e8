"""Commands work in the folder of a project, and name the products that a faulty dataset file prevents."""

import pytest
import yaml

import reprise
from pipeline.core.layout import RUN_FILE, WEIGHTS_FILE
from pipeline.papers.project import load_project
from pipeline.workflow.graph import Graph, datasets_in
from reprise.__main__ import main

FAULTY = "grammar-smoke-trees"


WITH_ROOT = [["show"], ["verify"], ["free"], ["site"]]


@pytest.mark.parametrize(
    "words",
    [["status"], ["results"], ["translate", "attention/base"], ["make", "all"], ["new", "paper", "mine"], *WITH_ROOT],
)
def test_no_command_takes_another_folder_for_an_empty_project(tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 1
    assert "error: no project here" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    if words in WITH_ROOT:
        assert main([*words, "--root", str(tmp_path)]) == 1
        assert f"error: no project in {tmp_path}" in capsys.readouterr().err


def test_run_with_other_settings_is_reported_and_not_used(root, refused):
    project = load_project(root, {"scale": "smoke"})
    run = project.runs_of("attention", "base", "wmt14-en-de")[0]
    old = project.layout.run(run).with_name("seed1-0123abcd")
    old.mkdir(parents=True)
    (old / WEIGHTS_FILE).touch()
    for name in ("attention/base/wmt14-en-de", "attention/base"):
        said = refused("translate", name, "--set", "scale=smoke")
        assert "seed1-0123abcd is trained: name this folder to use it" in said
    (old / RUN_FILE).write_text(yaml.safe_dump(project.run_yaml(run)))
    said = refused("compare", old, old, "--set", "scale=smoke")
    assert f"trained, not decoded; no current report reads it; `reprise score {old}`" in said


def test_faulty_dataset_blocks_only_the_reports_that_need_it(root, caplog, capsys):
    graph = Graph(load_project(root, {"scale": "smoke"}))
    reports = graph.reports(graph.project.papers)
    without = [report for report in reports if FAULTY not in datasets_in(graph.closure([report]))]
    misspell_kind(root, FAULTY)
    broken = Graph(load_project(root, {"scale": "smoke"}))
    found = broken.readable(broken.project.papers)
    names = [[(type(report), report.paper) for report in each] for each in (found, without)]
    assert names[0] == names[1] and 0 < len(without) < len(reports)
    assert f"{FAULTY}.yaml: missing key 'kind'; products that need this dataset are left out" in caplog.text
    assert main(["status", "--no-forecast", "--set", "scale=smoke"]) == 0
    assert "no Snakemake is running; to continue: " in capsys.readouterr().out


def misspell_kind(root, dataset):
    path = root / f"workflow/datasets/{dataset}.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("kind:", "knd:", 1), encoding="utf-8")


def test_command_on_a_faulty_dataset_reports_its_fault(root, refused):
    misspell_kind(root, "grammar-smoke-en-de")
    for command, name in (
        ("results", "weighted"),
        ("translate", "attention/base"),
        ("translate", "attention/base/wmt14-en-de"),
    ):
        assert "grammar-smoke-en-de" in refused(command, name, "--set", "scale=smoke")


def test_a_notebook_completes_what_is_here_by_name():
    assert {"open_run", "table", "claims", "curves"} <= set(dir(reprise))
