"""Published recipes: a folder like a paper's, which no scale changes and which `all` leaves out."""

from pathlib import Path

import pytest

from pipeline.experiment.comparability import Comparability
from pipeline.experiment.graph import Graph
from pipeline.experiment.project import load_project
from pipeline.experiment.targets import unknown_target
from pipeline.kinds.cells.shared.cell import PrintedTable
from pipeline.kinds.measured import Measured
from pipeline.kinds.view import PaperView
from pipeline.products import RunId
from pipeline.training.schedule import Schedule

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def small():
    return load_project(ROOT, {"scale": "small", "seeds": 3})


def test_no_rule_of_a_scale_changes_a_published_recipe(small):
    for system in small.papers["anchors"].systems:
        (run, *_) = small.runs_of("anchors", system, "multi30k-en-de-lowercased")
        for section in ("model", "training"):
            assert small.section(run, section) == small.full_section("anchors", system, section)
    assert small.run_spec(RunId("attention", "base", "multi30k-en-de", 1)).model.d_model == 128  # 512 in the paper


def test_our_numbers_are_comparable_with_the_published_ones(small):
    for name, entry in small.papers["anchors"].tables.items():
        view = PaperView(small, "anchors")
        table = PrintedTable(view, small.printed["anchors"][name], entry.cells, Measured(view))
        for cell in entry.cells.values():
            for index in range(len(table.rows)):
                assert Comparability(small, "anchors").reasons(entry, table, index, cell) == []


def test_the_rate_of_the_tiny_transformer_peaks_at_the_published_one_after_2000_updates(small):
    spec = small.run_spec(small.runs_of("anchors", "tiny-transformer", "multi30k-en-de-lowercased")[0])
    schedule = Schedule(spec.model, spec.training)
    rates = [schedule.weights(update) for update in range(4000)]
    assert rates.index(max(rates)) + 1 == 2000
    assert max(rates) == pytest.approx(0.005, rel=1e-6)


def test_all_leaves_them_out_and_another_scale_names_the_one_they_are_made_at(small):
    assert "anchors" not in small.reproduced and set(small.papers) == {*small.reproduced, "anchors"}
    assert unknown_target(small, "anchors", {"anchors"}) is None
    demo = load_project(ROOT, {"scale": "demo"})
    assert unknown_target(demo, "anchors", {"anchors"}) == (
        "anchors is made at scale small only; add --config scale=small"
    )
    assert Graph(demo).reports(["anchors"]) == []


def test_three_seeds_are_trained_where_three_are_asked_for(small):
    assert [run.seed for run in small.runs_of("anchors", "tiny-transformer", "multi30k-en-de-lowercased")] == [1, 2, 3]
