"""Commands work in the folder of a project, and name the products that a faulty dataset file prevents."""

import pytest
import yaml
from copied_project import copy_project

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


def test_run_with_other_settings_is_reported_and_not_used(tmp_path, monkeypatch, capsys):
    root = copy_project(tmp_path)
    monkeypatch.chdir(root)
    project = load_project(root, {"scale": "smoke"})
    run = project.runs_of("attention", "base", "wmt14-en-de")[0]
    today = project.layout.run(run)
    old = today.with_name("seed1-0123abcd")
    old.mkdir(parents=True)
    (old / WEIGHTS_FILE).touch()
    for name in ("attention/base/wmt14-en-de", "attention/base"):
        assert main(["translate", name, "--set", "scale=smoke"]) == 1
        assert "seed1-0123abcd is trained: name this folder to use it" in capsys.readouterr().err
    (old / RUN_FILE).write_text(yaml.safe_dump(project.run_yaml(run)))
    assert main(["compare", str(old), str(old), "--set", "scale=smoke"]) == 1
    assert f"trained, not decoded; no current report reads it; `reprise score {old}`" in capsys.readouterr().err


def test_faulty_dataset_blocks_only_the_reports_that_need_it(tmp_path, monkeypatch, caplog, capsys):
    root = copy_project(tmp_path)
    monkeypatch.chdir(root)
    graph = Graph(load_project(root, {"scale": "smoke"}))
    without = [
        report for report in graph.reports(graph.project.papers) if FAULTY not in datasets_in(graph.closure([report]))
    ]
    path = root / f"workflow/datasets/{FAULTY}.yaml"
    record = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump({"knd" if key == "kind" else key: value for key, value in record.items()}))
    broken = Graph(load_project(root, {"scale": "smoke"}))
    found = broken.readable(broken.project.papers)
    assert [(type(product), product.paper) for product in found] == [
        (type(product), product.paper) for product in without
    ] and without
    assert len(without) < len(graph.reports(graph.project.papers))
    assert f"{FAULTY}.yaml: missing key 'kind'; products that need this dataset are left out" in caplog.text
    assert main(["status", "--no-forecast", "--set", "scale=smoke"]) == 0
    assert "no Snakemake is running; to continue: " in capsys.readouterr().out


def test_command_on_a_faulty_dataset_reports_its_fault(tmp_path, monkeypatch, capsys):
    root = copy_project(tmp_path)
    monkeypatch.chdir(root)
    path = root / "workflow/datasets/grammar-smoke-en-de.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("kind:", "knd:", 1))
    for words in (
        ["results", "weighted"],
        ["translate", "attention/base/wmt14-en-de"],
        ["translate", "attention/base"],
    ):
        assert main([*words, "--set", "scale=smoke"]) == 1
        assert "grammar-smoke-en-de" in capsys.readouterr().err


def test_a_notebook_completes_what_is_here_by_name():
    assert {"open_run", "table", "claims", "curves"} <= set(dir(reprise))
