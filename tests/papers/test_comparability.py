"""Comparability follows from the run: data, metric, scale and deviations."""

import shutil
from pathlib import Path

import pytest
import yaml
from fabricated import bleu_statistics, table_rows, write_score
from real_project import real_project

from pipeline.analysis.cells.cell import PrintedTable
from pipeline.analysis.run_folders import RunFolders
from pipeline.analysis.view import PaperView
from pipeline.papers.comparability import Comparability, format_reasons
from pipeline.papers.project import load_project
from pipeline.report.filled_table import fill
from pipeline.report.table import render

ROOT = Path(__file__).resolve().parents[2]
PAPER, TABLE = "weighted", "table2"


@pytest.fixture
def copy_of_project(tmp_path):
    """A project folder that a test may change, with a score in the first row of the table."""
    shutil.copytree(ROOT / "workflow", tmp_path / "workflow")
    shutil.copy(ROOT / "config.yaml", tmp_path)
    edit(tmp_path / f"workflow/papers/{PAPER}/paper.yaml", lambda paper: paper["tables"][TABLE]["cells"].pop("gleu"))

    def load(**settings):
        project = load_project(tmp_path, {"work": str(tmp_path / "work"), "scale": "paper", **settings})
        for run in project.runs_of(PAPER, "attention/C1", "wmt14-en-de"):
            for metric in ("bleu_paper", "sacrebleu"):
                write_score(project, run, metric, "final", "dev", bleu_statistics(0.6))
        return project

    return tmp_path, load


def edit(path, change):
    value = yaml.safe_load(path.read_text(encoding="utf-8"))
    change(value)
    path.write_text(yaml.safe_dump(value, sort_keys=False), encoding="utf-8")


def first_row(project):
    """(difference, why not) of the first row, and the line about the column below the table."""
    row = table_rows(project, PAPER, TABLE)[0]
    lines = render(project, PAPER, TABLE, fill(project, PAPER, TABLE)).split("\n")
    (note,) = (line for line in lines if line.startswith("- bleu: "))
    return row["bleu_difference"], row["bleu_why_not"], note


def test_own_data_at_the_scale_of_the_paper_is_comparable(copy_of_project):
    _, load = copy_of_project
    project = load()
    found, why_not, note = first_row(project)
    ours = float(table_rows(project, PAPER, TABLE)[0]["bleu_ours"])
    assert (float(found), why_not) == (pytest.approx(ours - 23.7), "")
    assert "not comparable" not in note


def test_dataset_without_stands_in_for_is_still_a_stand_in(copy_of_project):
    folder, load = copy_of_project
    edit(folder / "workflow/datasets/grammar-smoke-en-de.yaml", lambda value: value.pop("stands_in_for"))
    found, why_not, note = first_row(load(scale="smoke"))
    assert found == "not comparable"
    assert "`grammar-smoke-en-de` stands in for wmt14-en-de" in why_not
    assert "scale smoke changes model.d_ff, model.d_model" in why_not and "training.max_steps" in why_not
    assert "not comparable with the printed number, as `grammar-smoke-en-de` stands in for wmt14-en-de; scale" in note


def test_scale_that_changes_a_run_makes_it_incomparable(copy_of_project):
    folder, load = copy_of_project
    edit(folder / "workflow/scales/paper.yaml", lambda value: value.update(model={"d_ff": {"divide": 2}}))
    assert first_row(load())[:2] == ("not comparable", "scale paper changes model.d_ff")


@pytest.mark.parametrize(
    ("section", "setting", "expected"),
    [
        ("training", "precision", ""),
        ("training", "micro_batch_tokens", ""),
        ("training", "validate_every", ""),
        ("training", "branch_lr_factor", ""),  # a Transformer has no branches
        ("training", "max_steps", "scale paper changes training.max_steps"),
        ("training", "max_length", "scale paper changes training.max_length"),
        ("training", "tokens_per_update", "scale paper changes training.tokens_per_update"),
        ("decoding", "batch_tokens", ""),
        ("decoding", "beam_size", "scale paper changes decoding.beam_size"),
    ],
)
def test_machine_settings_leave_a_run_comparable(copy_of_project, section, setting, expected):
    folder, load = copy_of_project
    rule = {"set": "fp32"} if setting == "precision" else {"multiply": 2}

    def change(scale):
        scale.setdefault(section, {})[setting] = rule

    edit(folder / "workflow/scales/paper.yaml", change)
    assert first_row(load())[1] == expected


def test_another_metric_than_the_printed_one_is_not_comparable(copy_of_project):
    folder, load = copy_of_project

    def change(paper):
        paper["tables"][TABLE]["cells"]["bleu"]["metric"] = "sacrebleu"

    edit(folder / f"workflow/papers/{PAPER}/paper.yaml", change)
    found, why_not, note = first_row(load())
    assert found == "not comparable"
    assert why_not == "bleu_newstest2013 is printed in bleu_paper, measured in sacrebleu"
    assert why_not in note


def test_a_column_whose_metric_is_not_named_is_not_comparable(copy_of_project):
    folder, load = copy_of_project
    edit(folder / f"workflow/papers/{PAPER}/paper.yaml", lambda paper: paper["tables"][TABLE].pop("printed_metrics"))
    assert "printed in no metric named" in first_row(load())[1]


@pytest.mark.parametrize(("changes", "expected"), [([], ""), (["budget"], "deviation 1 changes the budget")])
def test_deviation_without_changes_keeps_rows_comparable(copy_of_project, changes, expected):
    folder, load = copy_of_project
    edit(folder / f"workflow/papers/{PAPER}/paper.yaml", lambda paper: paper["deviations"][0].update(changes=changes))
    project = load()
    assert first_row(project)[1] == expected
    assert table_rows(project, PAPER, TABLE)[0]["deviations"] == "1 4 5 6 7 8"
    assert ("in Transformer C" in first_row(project)[2]) == bool(changes)  # other rows stay comparable


def test_deviation_of_the_owning_paper_counts(copy_of_project):
    folder, load = copy_of_project
    edit(
        folder / "workflow/papers/attention/paper.yaml", lambda paper: paper["deviations"][1].update(changes=["model"])
    )
    assert first_row(load())[1] == "deviation 2 of attention changes the model"


def test_stand_in_of_a_fused_language_model_counts():
    project = real_project({"scale": "paper"})
    filled = fill(project, "coldfusion", "table3")
    fused = next(number for number, row in enumerate(filled.table.rows) if row["system"] == "CF4")
    said = [reason.detail for reason in filled.reasons["source_wer"][fused] if reason.is_stand_in]
    assert len(said) == 2 and said[1].endswith("stands in for full-text")


def reasons(project, paper, table, cell, **row):
    """Why a cell is not comparable in the first row with these columns; nothing has to be run."""
    view, entry = PaperView(project, paper), project.table(paper, table)
    printed = PrintedTable(view, project.printed[paper][table], entry.cells, RunFolders(view))
    index = next(number for number, found in enumerate(printed.rows) if row.items() <= found.items())
    return format_reasons(Comparability(project, paper).reasons(entry, printed, index, entry.cells[cell]))


@pytest.fixture
def at_paper_scale(tmp_path):
    """A function that loads the project after a change of the scale `paper`."""
    shutil.copytree(ROOT / "workflow", tmp_path / "workflow")
    shutil.copy(ROOT / "config.yaml", tmp_path)

    def load(**sections):
        def change(scale):
            for section, rules in sections.items():
                scale.setdefault(section, {}).update(rules)

        edit(tmp_path / "workflow/scales/paper.yaml", change)
        return load_project(tmp_path, {"work": str(tmp_path / "work"), "scale": "paper"})

    return load


@pytest.mark.parametrize(
    ("cell", "expected"), [("ende", "scale paper changes training.checkpoint_every"), ("ende_last", "")]
)
def test_distance_of_checkpoints_matters_only_if_averaged(at_paper_scale, cell, expected):
    project = at_paper_scale(training={"checkpoint_every": {"multiply": 2}})
    assert reasons(project, "attention", "recipes", cell, system="base") == expected


def test_validation_interval_matters_only_if_training_reads_it(at_paper_scale):
    project = at_paper_scale(training={"validate_every": {"multiply": 2}})
    plateau = reasons(project, "coldfusion", "table3", "source_wer", system="attention-source")
    assert "scale paper changes training.validate_every" in plateau
    assert reasons(project, "attention", "recipes", "ende", system="base") == ""


def test_unchanged_distance_of_checkpoints_is_comparable(at_paper_scale):
    assert reasons(at_paper_scale(), "attention", "recipes", "ende", system="base") == ""


@pytest.mark.parametrize(
    ("system", "decoding", "changed"),
    [
        ("ctc", "shallow-ctc", True),  # used by the decoding
        ("CF4", "final", True),  # fused in training
        ("attention-source", "final", False),
        ("attention-target", "final", False),
    ],
)
def test_training_of_a_language_model_matters_if_used(at_paper_scale, system, decoding, changed):
    longer = {"coldfusion/lm-full": {"training": {"max_steps": {"multiply": 2}}}}
    project = at_paper_scale(systems=longer)
    why = reasons(project, "coldfusion", "table3", "target_wer", system=system, decoding=decoding)
    assert ("scale paper changes training.max_steps" in why) is changed


@pytest.mark.parametrize("cell", ["source_wer", "target_wer"])
def test_a_stand_in_for_the_scored_set_matters(at_paper_scale, cell):
    why = reasons(at_paper_scale(), "coldfusion", "table3", cell, system="attention-source")
    assert "stands in for source" in why
    assert ("stands in for target" in why) is (cell == "target_wer")


def test_a_gain_is_comparable_only_if_both_rows_are(at_paper_scale):
    project = at_paper_scale(systems={"weighted/C1-short": {"training": {"max_steps": {"multiply": 2}}}})
    cells = ("gain_equal_steps", "gain", "bleu")
    against_short, gain, score = (reasons(project, "weighted", "readings", cell, system="C") for cell in cells)
    assert "scale paper changes training.max_steps" in against_short
    assert "training.max_steps" not in gain + score


def test_a_domain_gap_is_comparable_only_if_both_ends_are(at_paper_scale):
    project = at_paper_scale(systems={"coldfusion/attention-target": {"training": {"max_steps": {"multiply": 2}}}})
    gap, rate = (reasons(project, "coldfusion", "table3", cell, system="DF0") for cell in ("gap", "target_wer"))
    assert "scale paper changes training.max_steps" in gap
    assert "training.max_steps" not in rate
