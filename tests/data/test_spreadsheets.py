"""Tables are read as written, or as spreadsheets quote them; changes and doubtful cells are logged."""

import csv
import io
import random

import pytest

from pipeline.data.text.text_files import read_rows

CELLS = ['He said "yes".', '"Yes," he said. "No."', "plain", "a, b", '"', "", "two\nlines", "tab\there", '5" pipe']


def saved(rows: list[list[str]], quoting: int) -> list[str]:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, delimiter="\t", quoting=quoting, lineterminator="\r\n").writerows(rows)
    return buffer.getvalue().split("\n")[:-1]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_tables_of_spreadsheets_lose_their_quotation_marks(quoting, seed, caplog):
    draw = random.Random(seed)
    rows = [[draw.choice(CELLS), draw.choice(CELLS)] for _ in range(30)] + [['a "b" c', "d"]]
    found = read_rows(saved(rows, quoting), "t.tsv")
    assert [cells for _, cells in found] == [
        [cell.replace("\n", " ").replace("\t", " ") for cell in row] for row in rows
    ]
    assert "t.tsv: removed the quotation marks of a spreadsheet" in caplog.text


def test_tables_without_such_marks_stay_as_they_are(seed, caplog):
    draw = random.Random(seed)
    cells = ["plain", 'He said "yes".', '"Yes," he said. "No."', '5" pipe', '"open', "a, b"]
    rows = [[draw.choice(cells), draw.choice(cells)] for _ in range(30)]
    assert read_rows(["\t".join(row) + "\n" for row in rows], "t.tsv") == list(enumerate(rows, start=1))
    assert not caplog.text


def test_a_quotation_over_several_rows_joins_no_rows():
    rows = [["a", '"Yes."', "1"], ["b", '"so he', "2"], ["c", 'said"', "3"], ["d", "plain", "4"]]
    assert read_rows(["\t".join(row) for row in rows], "t.tsv") == list(enumerate(rows, start=1))


@pytest.mark.parametrize("cell", ['"No, thanks."', '"No." '])
def test_a_cell_in_doubt_stays_and_is_named(cell, caplog):
    rows = [["a", "b"], [cell, "c"]]
    assert [cells for _, cells in read_rows(["\t".join(row) for row in rows], "t.tsv")] == rows
    assert "t.tsv: line 2 keeps the quotation marks around a cell" in caplog.text


def test_a_table_of_both_kinds_is_undone_where_it_is_certain(caplog):
    lines = ['"say ""a"" twice"\tx', '5" pipe\ty', '"So."\tz']
    assert [cells[0] for _, cells in read_rows(lines, "t.tsv")] == ['say "a" twice', '5" pipe', '"So."']
    said = "removed the quotation marks of a spreadsheet, e.g. on line 1, but kept others, e.g. on line 2"
    assert said in caplog.text


@pytest.mark.parametrize("cell", ['"He said ""x""" ', ' "He said ""x"""'])
def test_a_quoted_cell_with_a_space_beside_it_is_undone(cell, caplog):
    rows = read_rows(["a\tb", f"{cell}\tc"], "t.tsv")
    assert rows == [(1, ["a", "b"]), (2, ['He said "x"', "c"])]
    assert "removed the quotation marks of a spreadsheet, the first on line 2" in caplog.text
