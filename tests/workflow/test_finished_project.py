"""The project that tests share takes runs of this commit alone, and each copy has only what its test asked for."""

import json
import re
from pathlib import Path

import finished_project
import pytest
from copied_project import ROOT

from pipeline.core.artifacts import Figure, ModelSizes, RunArtifact, RunId, Trained
from pipeline.papers.project import load_project
from pipeline.workflow.graph import Graph, datasets_in, runs_in

PROJECT = load_project(ROOT, {"scale": "smoke"})
LAYOUT = PROJECT.layout
TRAINING = RunId("attention", "base", "grammar-smoke-en-de", 1)
OTHER = RunId("weighted", "C", "grammar-smoke-en-de", 1)
NEEDED = Graph(PROJECT).closure([Trained(TRAINING)])
COMMIT = "0123456789ab"


@pytest.fixture
def smoke(tmp_path, monkeypatch) -> Path:
    """A checkout with the needed run and corpora."""
    monkeypatch.setattr(finished_project, "commit", lambda: COMMIT)
    for part in [LAYOUT.run(TRAINING), *map(LAYOUT.corpus, datasets_in(NEEDED))]:
        write(tmp_path / "smoke" / part / "done.json", json.dumps({"provenance": {"commit": COMMIT}}))
    write(tmp_path / "smoke/.snakemake/metadata/record")
    return tmp_path / "smoke"


def write(path: Path, content: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def files_in(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


def adopt(smoke: Path) -> set[Path]:
    finished_project.adopt(smoke, smoke.parent / "project", LAYOUT, NEEDED)
    return files_in(smoke.parent / "project")


def test_runs_of_the_same_commit_are_adopted_with_their_corpora(smoke):
    wanted = files_in(smoke)
    write(smoke / LAYOUT.run(OTHER) / "done.json")
    assert adopt(smoke) == adopt(smoke) == wanted


@pytest.mark.parametrize("other", ["ba9876543210", f"{COMMIT}+changes", "unknown"])
def test_runs_of_another_commit_are_refused(other, smoke):
    record = write(smoke / LAYOUT.run(TRAINING) / "done.json", json.dumps({"provenance": {"commit": other}}))
    said = f"{record}: trained by commit {other}, this is {COMMIT}; remove it and run `snakemake"
    with pytest.raises(AssertionError, match=re.escape(said)):
        adopt(smoke)


@pytest.mark.parametrize("here", [f"{COMMIT}+changes", "unknown"])
def test_checkout_of_no_commit_adopts_nothing(here, smoke, monkeypatch):
    write(smoke / LAYOUT.run(TRAINING) / "done.json", json.dumps({"provenance": {"commit": here}}))
    monkeypatch.setattr(finished_project, "commit", lambda: here)
    with pytest.raises(AssertionError, match=re.escape(f"this checkout is of no commit ({here}); unset it")):
        adopt(smoke)


def test_outputs_of_an_adopted_run_come_with_their_corpora():
    run = RunId("coldfusion", "attention-source", "grammar-smoke-speech-source", 1)
    graph = Graph(PROJECT)
    needed = graph.closure([Trained(run)])
    found = finished_project.with_all_outputs(graph, needed)
    assert "grammar-smoke-speech-target" in set(datasets_in(found)) - set(datasets_in(needed))
    every = [product for product in graph.closure(graph.reports(PROJECT.papers)) if isinstance(product, RunArtifact)]
    assert {product for product in every if product.run in runs_in(found)} <= set(found)
    assert finished_project.with_all_outputs(graph, found) == found


def test_a_run_that_is_missing_or_unfinished_is_refused(smoke):
    (smoke / LAYOUT.run(TRAINING) / "done.json").unlink()
    with pytest.raises(AssertionError, match=r"done\.json: no such file; run `snakemake"):
        adopt(smoke)


def test_only_what_is_asked_for_is_left_in_a_copy(tmp_path):
    asked = [Figure("attention", "figure3"), Trained(TRAINING)]
    needed = Graph(PROJECT).closure(asked)
    kept = [LAYOUT.run(TRAINING) / "done.json", LAYOUT.corpus("grammar-smoke-en-de") / "raw/train.en"]
    lost = [LAYOUT.run(OTHER) / "done.json", LAYOUT.corpus("grammar-smoke-trees") / "raw/train.en"]
    kept += [LAYOUT.results / "attention" / name for name in ("figure3.svg", ".digests/figure3.svg", "figure3.md")]
    lost += [LAYOUT.results / "attention" / name for name in ("figure4.svg", ".digests/figure4.svg", "table2.csv")]
    lost += [LAYOUT.results / "weighted/figure3.svg", LAYOUT.path(ModelSizes("weighted"))]
    for path in (*kept, *lost):
        write(tmp_path / path)
    finished_project.remove_others(tmp_path, LAYOUT, needed)
    assert files_in(tmp_path) == set(kept)
