"""Marks of values on the site, and rows that are compared with printed ones."""

import numpy as np
import pytest
from fabricated import bleu_statistics, perplexity_statistics, write_score
from real_project import real_project

from pipeline.core.artifacts import Score
from pipeline.core.records.outputs import ScoreFile
from pipeline.metrics.bleu import bleu
from pipeline.metrics.metric import resampled
from pipeline.report.filled_table import fill
from pipeline.report.site.compare import pairs, sides
from pipeline.report.site.site_data import SiteData
from pipeline.report.site.tables import shown_table

SPLITS = ["test", "test2", "test3", "test4", "test5"]


def put(project, run, decoding, split, rows):
    """Return a project whose table shows this BLEU everywhere."""
    for metric in ("bleu_paper", "bleu_closest", "sacrebleu", "gleu"):
        write_score(project, run, metric, decoding, split, rows)


def scored(project, paper, table, cell):
    found = sides(SiteData(project, False), paper, fill(project, paper, table), cell)
    return found, pairs(found)


def expected(one, other, seeds):
    """Compare averages of scores; one and other are lists of statistics (N, F), resampled with `seeds`."""
    value = np.mean([bleu(rows.sum(axis=0)) for rows in one]) - np.mean([bleu(rows.sum(axis=0)) for rows in other])
    draws = [
        np.mean([resampled(rows, bleu, seed=seed) for rows, seed in zip(side, seeds, strict=False)], axis=0)
        for side in (one, other)
    ]
    return [value, *np.percentile(draws[0] - draws[1], [2.5, 97.5])]


def test_row_of_several_decodings_is_compared_by_their_mean(project):
    """Draw five branch weights; the first are the worst."""
    (run,) = project.runs_of("weighted", "C", "wmt14-en-de")
    drawn = {f"random-{n}": bleu_statistics(0.3 + 0.05 * n, 1) for n in range(1, 6)}
    learnt = bleu_statistics(0.6, 1)
    for decoding, rows in ({"final": learnt} | drawn).items():
        put(project, run, decoding, "dev", rows)
    found, tested = scored(project, "weighted", "table3", "bleu")
    (pair,) = tested.values()
    assert [pair[key] for key in ("difference", "low", "high")] == pytest.approx(
        expected([learnt], [*drawn.values()], [1] * 5), abs=1e-4
    )
    assert pair["difference"] == pytest.approx(float(found[0]["score"]) - float(found[1]["score"]), abs=0.011)


def test_scores_beside_the_difference_are_of_the_compared_seed(tmp_path):
    project = real_project({"work": str(tmp_path), "scale": "demo", "seeds": 3})
    first = {}
    for number, system in enumerate(("C", "N4")):
        for run in project.runs_of("weighted", system, "wmt14-en-de"):
            rows = bleu_statistics(0.4 + 0.1 * number * run.seed, 1)
            first.setdefault(system, f"{bleu(rows.sum(axis=0)):.2f}")
            put(project, run, "final", "dev", rows)
    found, tested = scored(project, "weighted", "table2", "bleu")
    assert [side["score"] for side in found] == [*first.values()]
    assert tested["0,1"]["difference"] == pytest.approx(float(first["C"]) - float(first["N4"]), abs=0.011)


def test_infinite_score_has_no_paired_test(project):
    """A system that gave one sentence no probability has an infinite perplexity."""
    for system, nats in (("base", 1.0), ("A1", 1.5), ("A2", 1e6)):
        (run,) = project.runs_of("attention", system, "wmt14-en-de")
        write_score(project, run, "perplexity", "final", "dev", perplexity_statistics(nats))
    found, tested = scored(project, "attention", "table3", "ppl")
    assert [side["score"] for side in found].count("inf") == 1
    assert [*tested] == ["0,1"] and tested["0,1"]["difference"] < 0


def test_rows_without_outputs_link_to_none(project):
    """Perplexities need no translation."""
    for system in ("base", "A1"):
        (run,) = project.runs_of("attention", system, "wmt14-en-de")
        write_score(project, run, "perplexity", "final", "dev", perplexity_statistics(1.0))
    found, _ = scored(project, "attention", "table3", "ppl")
    assert [side["outputs"] for side in found] == ["", ""]


def test_mean_over_test_sets_is_compared_only_to_the_same_sets(project):
    made = {}
    for place, system in enumerate(("RNN", "NTM")):
        (run,) = project.runs_of("multichannel", system, "nist-zh-en")
        made[system] = [bleu_statistics(0.5 + 0.1 * place * n, n) for n in range(5)]
        for split, rows in zip(SPLITS, made[system], strict=True):
            put(project, run, "beam10", split, rows)
    found, tested = scored(project, "multichannel", "table1", "avg")
    assert [side["system"] for side in found] == ["multichannel/RNN", "multichannel/NTM"]
    assert [tested["0,1"][key] for key in ("difference", "low", "high")] == pytest.approx(
        expected(made["RNN"], made["NTM"], range(1, 6)), abs=1e-4
    )
    path = project.layout.path(Score(run, "scores", "beam10", "test3"))
    ScoreFile.read(path).model_copy(update={"references": "another"}).write(path)
    assert scored(project, "multichannel", "table1", "avg")[1] == {}


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


def test_row_named_by_its_system_is_described(project):
    table = shown_table(SiteData(project, False), "attention", "table3", fill(project, "attention", "table3"))
    names = [row.name for row in table.rows]
    assert names[:2] == ["base model", "A1: h = 1"] and table.label == "model"
    assert all(len(name) > 4 for name in names)
