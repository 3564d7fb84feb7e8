"""Tables show printed numbers beside measured ones, and never copy one or leave it blank."""

import random
import statistics
from dataclasses import replace

import numpy as np
import pytest
from cell_runs import cell_runs, write_cell
from fabricated import table_rows, write_score
from made_records import layer_costs, score_file, start_cost, training_cost
from real_project import real_project

from pipeline.__main__ import main
from pipeline.analysis.cells.cell import short
from pipeline.core.artifacts import ModelSizes
from pipeline.core.errors import UserError
from pipeline.core.json_csv import read_json, write_json
from pipeline.core.provenance import ROOT
from pipeline.papers.reports import table_artifacts
from pipeline.report.filled_table import fill
from pipeline.report.table import render, scale_rules


def project_in(folder, **settings):
    return real_project({"work": str(folder), **settings})


def cells_at(project, table, row, column="bleu", paper="weighted"):
    """Return the runs behind one cell of a table."""
    return [cell for cell in cell_runs(project, paper, table) if (cell.row, cell.cell) == (row, column)]


def test_a_run_that_did_not_run_says_so_and_shows_no_number(project):
    rows = table_rows(project, "weighted", "table2")
    assert len(rows) == 10 and all(row["bleu_printed"] for row in rows)
    assert {(row["status"], row["bleu_ours"]) for row in rows} == {("not run", "")}
    assert [row["deviations"] for row in rows[:2]] == ["1 4 5 6 7 8 9", "3 4 5 6 7 8 9 11 12 15"]


def test_infinite_perplexity_of_a_seed_has_no_spread(tmp_path):
    project = project_in(tmp_path, seeds=2)
    for run, nats in zip(project.runs_of("attention", "base", "wmt14-en-de"), (2.0, 1000.0), strict=True):
        write_score(project, run, "perplexity", "final", "dev", np.array([[nats, 1.0]]))
    (row,) = (row for row in table_rows(project, "attention", "table3") if row["ppl_ours"])
    assert (row["ppl_ours"], row["ppl_spread"]) == ("inf", "")


def test_cited_rows_are_shown_as_cited_with_their_flops(project):
    rows = table_rows(project, "attention", "table2")
    assert [row["status"] for row in rows].count("cited") == 8
    (cited,) = (row for row in rows if row["model"] == "Deep-Att + PosUnk")
    assert (cited["flops_ende_printed"], cited["flops_enfr_printed"]) == ("", "1e+20")


def test_mean_is_over_seeds_and_a_missing_seed_is_not_run(tmp_path):
    """The interval beside it is that of all seeds, too."""
    project = project_in(tmp_path, seeds=[7, 2, 11])
    cells = cells_at(project, "table2", 1)
    values = [random.uniform(10, 40) for _ in cells]
    for cell, value, status in zip(cells, values, ["not run", "incomplete", "incomplete"], strict=True):
        assert table_rows(project, "weighted", "table2")[1]["status"] == status
        write_cell(project, cell, "dev", value)
    row = table_rows(project, "weighted", "table2")[1]
    assert (row["status"], row["parameters_here_ours"], row["device_hours"]) == ("run", "123456", "1.5000")
    mean = statistics.fmean(values)
    found = [float(row[f"bleu_{name}"]) for name in ("ours", "low", "high", "spread")]
    assert found == pytest.approx([mean, mean - 1.5, mean + 0.5, statistics.stdev(values)], abs=0.005)
    assert row["runs"].count(";") == 2


def test_notes_of_a_table_name_its_seeds(tmp_path):
    project = project_in(tmp_path, seeds=[7, 2, 11])
    assert " Seeds: 7, 2, 11.\n" in render(project, "weighted", "table2", fill(project, "weighted", "table2"))


def test_several_decodings_of_a_row_are_averaged(project):
    cell = next(cell for cell in cell_runs(project, "weighted", "table3") if len(cell.decodings) == 5)
    values = [random.uniform(10, 40) for _ in cell.decodings]
    for decoding, value in zip(cell.decodings, values, strict=True):
        write_cell(project, replace(cell, decodings=[decoding]), "dev", value)
    row = table_rows(project, "weighted", "table3")[cell.row]
    found = [float(row["bleu_ours"]), float(row["bleu_spread"])]
    assert found == pytest.approx([statistics.fmean(values), statistics.stdev(values)], abs=0.005)


def test_row_names_number_of_lines_and_references(project):
    (cell,) = cells_at(project, "table2", 1)
    write_cell(project, cell, "dev", 20.0)
    (path,) = project.layout.run(cell.run).rglob("dev.json")
    path.write_text(path.read_text().replace('"references": "toy"', f'"references": "{"0123456789abcdef" * 4}"'))
    assert table_rows(project, "weighted", "table2")[1]["bleu_test_set"] == "toy (10 lines, references 0123456789ab)"


def test_bleu_stands_beside_two_other_recipes_by_name(tmp_path):
    """The other recipes have their own signatures, and only the paper's stands beside a printed number."""
    project = project_in(tmp_path, seeds=[1, 2])
    values = {"bleu_paper": [20.0, 21.0], "bleu_tok": [19.0, 19.5], "sacrebleu": [18.0, 19.0]}
    for index, cell in enumerate(cells_at(project, "table2", 1)):
        write_cell(project, cell, "dev", 20.0)
        entries = {
            name: {"value": seeds[index], "low": 1.0, "high": 2.0, "signature": f"recipe {name}"}
            for name, seeds in values.items()
        }
        folder = project.layout.run(cell.run) / "scores"
        score_file(entries | {"gleu": entries["bleu_paper"]}, lines=10).write(folder / cell.decodings[0] / "dev.json")
    row = table_rows(project, "weighted", "table2")[1]
    assert [row[f"bleu_{name}"] for name in ("ours", "bleu_tok", "sacrebleu")] == ["20.50", "19.25", "18.50"]
    signatures = [row[f"bleu_{name}"] for name in ("signature", "bleu_tok_signature", "sacrebleu_signature")]
    assert signatures == [f"recipe {name}" for name in values]
    assert not {"bleu_bleu_tok_printed", "bleu_sacrebleu_printed", "bleu_sacrebleu_difference"} & set(row)
    other = table_rows(project, "weighted", "table2")[0]
    assert (other["bleu_bleu_tok"], other["bleu_sacrebleu_signature"]) == ("", "")


def test_parameters_are_those_of_the_papers_size_at_every_scale(tmp_path):
    found = []
    for scale in ("smoke", "paper"):
        project = project_in(tmp_path, scale=scale)
        (wanted,) = (
            artifact for artifact in table_artifacts(project, "attention", "table3") if isinstance(artifact, ModelSizes)
        )
        command = ["model-sizes", "--root", str(ROOT), "--paper", "attention"]
        assert main([*command, "--out", str(project.layout.path(wanted)), "--set", f"scale={scale}"]) == 0
        found.append({row["parameters_ours"] for row in table_rows(project, "attention", "table3")})
    assert {row["parameters_ours"] for row in table_rows(project_in(tmp_path), "attention", "table3")} == {""}
    assert found[0] == found[1] and {"65073152", "35672064", "214171648"} < found[0]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        *(("", ""), ("12", "12"), ("42064", "42.1K"), ("65073152", "65.1M"), ("3.283e18", "3.28e+18")),
        *(("999499", "999K"), ("999600", "1M"), ("999960000", "1.00e+09"), ("9999.7", "10K")),
    ],
)
def test_large_numbers_are_shortened(number, text):
    assert short(number) == text


def test_printed_counts_keep_all_their_digits(project):
    rows = project.printed["multichannel"]["table1"]
    shown = [row["parameters_printed"] for row in table_rows(project, "multichannel", "table1")]
    assert shown == [row["parameters"] for row in rows] and "56314881" in shown
    assert table_rows(project, "weighted", "table2")[0]["parameters_printed"] == "36000000"


def test_flops_are_those_of_kept_steps_of_finished_trainings(project, tmp_path):
    """Seven of ten steps were kept. The cost so far of a training that is not finished is no result.

    The paper's formula multiplies time by the speed of the device, which has to be measured first.
    """
    for cell in cell_runs(project, "attention", "table2"):
        write_cell(project, cell, "test", 20.0)
        folder = project.layout.run(cell.run)
        training_cost(start_cost(steps=6, flops=6e9, seconds=60), start_cost(steps=4, flops=4e9, seconds=40)).write(
            folder / "cost.json"
        )
    names = ("flops_counted_ende_ours", "flops_ende_ours")
    row = table_rows(project, "attention", "table2")[-1]
    assert [row[name] for name in ("flops_ende_printed", *names)] == ["2.3e+19", "7e+09", ""]
    layer_costs([], device="toy processor", matmul_flops_per_s=1e10).write(tmp_path / "demo" / "layer_times.json")
    row = table_rows(project, "attention", "table2")[-1]
    assert [float(row[name]) for name in names] == pytest.approx([7e9, 70 * 1e10])
    for cell in cell_runs(project, "attention", "table2"):
        (project.layout.run(cell.run) / "done.json").unlink(missing_ok=True)
    assert [table_rows(project, "attention", "table2")[-1][name] for name in names] == ["", ""]


def test_scale_rules_of_a_tables_systems_stand_below_it(project):
    rules = {
        paper: " ".join(scale_rules(project, {run.run for run in cell_runs(project, paper, "table2")}))
        for paper in ("weighted", "coldfusion")
    }
    assert "model.num_branches divided by 2" in rules["weighted"]
    assert "weighted/B: training.max_steps divided by" in rules["weighted"]
    assert "coldfusion/" not in rules["weighted"] and "d_state" not in rules["weighted"]
    assert "coldfusion/lm-source: " in rules["coldfusion"]
    assert "multichannel/" not in rules["coldfusion"] and "num_branches" not in rules["coldfusion"]


def test_a_score_of_another_training_than_the_runs_is_refused(project):
    (cell,) = cells_at(project, "table2", 0)
    write_cell(project, cell, "dev", 20.0)
    folder = project.layout.run(cell.run)
    score = folder / "scores/final/dev.json"
    for path, key in ((folder / "done.json", "weights_digest"), (score, "training")):
        write_json(path, read_json(path) | {key: "a" * 64})
    assert table_rows(project, "weighted", "table2")[0]["bleu_ours"] == "20.00"
    write_json(score, read_json(score) | {"training": "b" * 64})
    said = r"scores/final/dev\.json: scores weights of another training \(it ended in bbb"
    with pytest.raises(UserError, match=said):
        table_rows(project, "weighted", "table2")


def test_missing_metric_is_named_with_those_that_exist(project):
    (cell,) = cells_at(project, "table3", 0, paper="attention")
    write_cell(project, cell, "dev", 20.0)
    path = project.layout.run(cell.run) / "scores/final/dev.json"
    record = read_json(path)
    del record["metrics"]["bleu_paper"]
    write_json(path, record)
    with pytest.raises(UserError, match=r"dev\.json: no metric 'bleu_paper'; there are gleu; .*`-R score`"):
        table_rows(project, "attention", "table3")


def test_a_row_is_run_when_each_of_its_scores_is_there(project):
    """The base model has two pairs of languages. A row with a number, or a trained run, is never called not run."""
    assert table_rows(project, "attention", "table2")[8]["status"] == "not run"
    for column, status in (("ende", "incomplete"), ("enfr", "run")):
        (cell,) = cells_at(project, "table2", 8, column, "attention")
        write_cell(project, cell, "test", 25.0)
        row = table_rows(project, "attention", "table2")[8]
        assert row["status"] == status and row[f"{column}_ours"] == "25.00"
