"""Markdown files show the numbers of the CSV, and count decided claims."""

import pytest
from cell_runs import cell_runs, write_cell
from copied_project import ROOT
from real_project import real_project

from pipeline.__main__ import main
from pipeline.analysis.claims.verdicts import Verdict
from pipeline.papers.paper import Deviation
from pipeline.report.claims import count_verdicts
from pipeline.report.filled_table import fill
from pipeline.report.markup import grid, literal, shortened
from pipeline.report.table import render

PAPER, TABLE = "weighted", "table2"


@pytest.fixture
def project(tmp_path):
    """Return a project with different scores of two systems."""
    project = real_project({"work": str(tmp_path)})
    for cell in cell_runs(project, PAPER, TABLE):
        if cell.row in (1, 2) and cell.cell == "bleu":
            write_cell(project, cell, "dev", 20.0 + cell.row)
    return project


def test_row_has_every_shown_column_and_its_cost(project):
    filled = fill(project, PAPER, TABLE)
    lines = [line for line in render(project, PAPER, TABLE, filled).split("\n") if line.startswith("|")]
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    shown = [dict(zip(header, row, strict=True)) for row in rows]
    assert len(shown) == len(filled.table.rows) == 10
    for name, cell in filled.entry.cells.items():
        for row, values in zip(shown, filled.cells[name], strict=True):
            for heading, text in cell.shown(values).items():
                assert row.get(f"{name} {heading}", "") == literal(text)
    assert [row["bleu ours"] for row in shown][:4] == ["", "21.00", "22.00", ""]
    assert shown[1]["bleu 95 %"] == "19.50–21.50" and all(row["bleu printed"] for row in shown)
    assert [row["status"] for row in shown] == filled.runs["status"].tolist()
    assert [row["notes"] for row in shown] == filled.runs["deviations"].tolist()


def test_grid_aligns_numbers_right_and_has_no_empty_column():
    rows = [["x", "", "1.5", "-2", "3", "+1"], ["1", "", "–", "", "y", "-0"], ["2", "", "y", "7", "4", ""]]
    lines = grid(["a", "empty", "b", "c", "d", "e"], rows).split("\n")
    assert len({len(line) for line in lines}) == 1 and "empty" not in lines[0]
    assert [cell[-1] for cell in lines[1].strip("|").split("|")] == ["-", "-", ":", "-", ":"]


def test_only_deviations_of_its_rows_stand_below_a_table(project):
    about_others = Deviation(systems=["attention/B1"], paper="One thing.", here="Another.", why="No row is about it.")
    about_all = Deviation(systems=["*"], paper="All of it.", here="Less.", why="Every row is about it.")
    record = project.papers[PAPER]
    deviations = [about_others, *record.deviations[:1], about_all]
    project.papers[PAPER] = record.model_copy(update={"deviations": deviations})
    text = render(project, PAPER, TABLE, fill(project, PAPER, TABLE))
    assert "\n1. " not in text and "No row is about it." not in text
    assert f"\n2. Paper: {deviations[1].paper}" in text and "\n3. Paper: All of it." in text


def test_stage_writes_both_files_and_counts_unfinished_rows(project, tmp_path, caplog):
    caplog.set_level("INFO")
    out, command = tmp_path / "table.csv", ["table", "--root", str(ROOT), "--paper", PAPER, "--table", TABLE]
    assert main([*command, "--set", f"work={project.config.work}", "--out", str(out)]) == 0
    assert out.with_suffix(".md").read_text() == render(project, PAPER, TABLE, fill(project, PAPER, TABLE))
    assert len(out.read_text().splitlines()) == 11
    assert caplog.messages[-1] == f"{out}: 10 rows, 8 without all numbers"


def test_standing_needs_a_printed_number(project):
    filled = fill(project, PAPER, TABLE)
    cell = filled.cells["bleu"][1]
    assert [filled.verdict("bleu", index) for index in (0, 1)] == ["not run", "not comparable"]
    cell["why_not"] = ""
    for printed, verdict in (("19.4", "higher"), ("19.6", "agrees"), ("22.6", "lower")):  # our interval is 19.5 to 22.5
        cell["printed"] = printed
        assert filled.verdict("bleu", 1) == verdict
    for key in ("low", "printed"):
        before, cell[key] = cell[key], ""
        assert filled.verdict("bleu", 1) == ""
        cell[key] = before
    cell |= {"ours": "inf", "low": "inf", "high": "inf"}
    assert filled.verdict("bleu", 1) == "higher"


def test_claims_proved_by_tests_are_not_counted_as_undecided():
    judged = [Verdict.UPHELD, Verdict.UPHELD, Verdict.CONTRADICTED, Verdict.NOT_DISTINGUISHABLE, Verdict.NOT_RUN]
    assert count_verdicts([Verdict.TESTED] * 2) == "2 tested"
    assert count_verdicts([Verdict.TESTED, *judged]) == (
        "3 of 5 decided (2 upheld, 1 contradicted, 1 not distinguishable, 1 not run, 1 tested)"
    )
    assert count_verdicts([Verdict.NOT_RUN]) == "0 of 1 decided (1 not run)"


def test_shortened_text_is_a_prefix_and_a_short_one_unchanged():
    long = "".join(map(str, range(100)))
    short = shortened(long, 70)
    assert short.endswith("…") and long.startswith(short[:-1]) and len(short) == 70
    assert all(shortened(long[:length], 70) == long[:length] for length in range(len(short) + 1))
    assert shortened(long[: len(short) + 1], 70) == short
