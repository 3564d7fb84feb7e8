"""Numbers of one seed are marked, also if they are means of several scores."""

from pathlib import Path

import pytest
from fabricated import bleu_statistics, write_score
from real_project import real_project

from pipeline.report.filled_table import fill
from pipeline.report.site.site_data import SiteData
from pipeline.report.site.tables import shown_table

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("seeds", "marked"), [(1, True), (2, False)])
def test_several_decodings_of_one_training_are_of_one_seed(tmp_path, seeds, marked):
    project = real_project({"work": str(tmp_path), "scale": "demo", "seeds": seeds})
    for run in project.runs_of("weighted", "C", "wmt14-en-de"):
        for n, decoding in enumerate(["final", *(f"random-{n}" for n in range(1, 6))]):
            for metric in ("bleu_paper", "gleu"):
                write_score(project, run, metric, decoding, "dev", bleu_statistics(0.4 + 0.02 * n, run.seed))
    table = shown_table(SiteData(project, False), "weighted", "table3", fill(project, "weighted", "table3"))
    learned, drawn, _ = (row.cells["bleu"] for row in table.rows)
    assert ["provisional" in cell.marks for cell in (learned, drawn)] == [marked, marked]
    assert drawn.spread


def test_row_named_by_its_system_is_described(tmp_path):
    project = real_project({"work": str(tmp_path), "scale": "demo"})
    table = shown_table(SiteData(project, False), "attention", "table3", fill(project, "attention", "table3"))
    names = [row.name for row in table.rows]
    assert names[:2] == ["base model", "A1: h = 1"] and table.label == "model"
    assert all(len(name) > 4 for name in names)
