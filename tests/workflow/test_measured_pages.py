"""Tables on the pages of docs/measured are those of the records beside them."""

import csv
import sys

import pytest
from copied_project import ROOT

sys.path.insert(0, str(ROOT / "docs"))
import measured_tables

PAGES = sorted(measured_tables.MEASURED.glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_of_a_page_are_those_of_its_records(page):
    assert measured_tables.filled(page) == page.read_text(encoding="utf-8")


def test_tables_are_found_on_pages():
    assert sum(page.read_text(encoding="utf-8").count("<!-- records") for page in PAGES) >= 12


def record(folder, rows):
    with open(folder / "table.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


@pytest.fixture
def page(tmp_path, monkeypatch):
    monkeypatch.setattr(measured_tables, "MEASURED", tmp_path)
    record(tmp_path, [["system", "loss", "bleu"], ["a/x", "1.5", "20"], ["a/y", "1.4 ± 0.1", "21"]])
    return tmp_path / "page.md"


def directive(rows, columns):
    return f"Text.\n\n<!-- records\nfile: table.csv\nrows: {rows}\ncolumns: {columns}\n-->\nold\n<!-- end -->\nMore.\n"


def test_rows_and_columns_are_taken_in_the_given_order(page):
    page.write_text(directive("{a/y: Y, a/x: X}", "{bleu: BLEU, loss: dev loss}"))
    lines = measured_tables.filled(page).partition("-->\n")[2].split("\n")
    assert lines[1:5] == [
        "|  | BLEU | dev loss |",
        "| --- | ---: | ---: |",
        "| Y | 21 | 1.4 ± 0.1 |",
        "| X | 20 | 1.5 |",
    ]
    assert lines[-3:] == ["<!-- end -->", "More.", ""]


@pytest.mark.parametrize(
    ("rows", "columns", "message"),
    [("{a/z: Z}", "{bleu: BLEU}", "0 rows whose system is 'a/z'"), ("{a/x: X}", "{wer: WER}", "no column 'wer'")],
)
def test_an_unknown_row_or_column_is_refused(page, rows, columns, message):
    page.write_text(directive(rows, columns))
    with pytest.raises(SystemExit, match=message):
        measured_tables.filled(page)
