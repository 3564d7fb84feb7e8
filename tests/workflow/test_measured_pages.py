"""Pages of the documentation: tables from records, navigation, and datasets of the speech page."""

import csv
import re
import sys
from pathlib import Path

import pytest
import yaml
from copied_project import ROOT

from pipeline.papers.project import load_project

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


def test_a_whole_file_is_shown_with_figures_to_the_right(page):
    record(
        page.parent,
        [["system", "loss", "note"], ["x", "1.5", "of two"], ["y", "", "2 of them, of which one is late, and so on"]],
    )
    page.write_text("<!-- records\nfile: table.csv\n-->\nold\n<!-- end -->\n")
    lines = measured_tables.filled(page).split("\n")
    assert lines[4:8] == [
        "| system | loss | note |",
        "| --- | ---: | --- |",
        "| x | 1.5 | of two |",
        "| y |  | 2 of them, of which one is late, and so on |",
    ]


@pytest.mark.parametrize(
    ("rows", "columns", "message"),
    [("{a/z: Z}", "{bleu: BLEU}", "0 rows whose system is 'a/z'"), ("{a/x: X}", "{wer: WER}", "no column 'wer'")],
)
def test_an_unknown_row_or_column_is_refused(page, rows, columns, message):
    page.write_text(directive(rows, columns))
    with pytest.raises(SystemExit, match=message):
        measured_tables.filled(page)


GENERATED = {"index.md", "contributing.md", "changelog.md"}
GENERATED |= {f"reference/{name}.md" for name in ("settings", "commands", "stages", "python")}
"""Pages that docs/generated_pages.py writes."""


def pages(entries) -> list[str]:
    """Return the paths in a navigation, which nests lists of one-entry mappings."""
    if isinstance(entries, str):
        return [entries]
    return [path for entry in entries for value in entry.values() for path in pages(value)]


def settings() -> dict:
    """Read mkdocs.yml without the meaning of MkDocs' own tags (`!ENV`, `!!python/name`): their values stay text."""
    return yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), yaml.BaseLoader)


def test_diagrams_are_drawn_not_shown_as_code():
    """Material turns a block of class `mermaid` into a picture, which a fence without that class does not become."""
    (fences,) = [extension["pymdownx.superfences"]["custom_fences"] for extension in settings()["markdown_extensions"]]
    assert {"mermaid"} == {fence["name"] for fence in fences} == {fence["class"] for fence in fences}
    used = {
        name for page in (ROOT / "docs").rglob("*.md") for name in re.findall(r"^```(mermaid)", page.read_text(), re.M)
    }
    assert used == {"mermaid"}


def test_navigation_names_every_page_once():
    found = pages(settings()["nav"])
    docs = ROOT / "docs"
    written = {str(page.relative_to(docs)) for page in docs.glob("**/*.md") if len(page.relative_to(docs).parts) < 3}
    assert sorted(found) == sorted(written | GENERATED)


def test_generated_pages_are_those_of_the_hook():
    source = (ROOT / "docs/generated_pages.py").read_text(encoding="utf-8")
    assert all(f'"{page}"' in source for page in GENERATED)
    assert settings()["hooks"] == ["docs/generated_pages.py"]


SPEECH_ROOT = Path(__file__).resolve().parents[2]
PAGE = (SPEECH_ROOT / "docs/speech.md").read_text(encoding="utf-8")
ROLES = ("source", "target", "source-text", "target-text", "full-text")


def listed(cell: str) -> list[str]:
    """Names of datasets in a cell; `a-{b,c}` stands for several."""
    names = []
    for name in re.findall(r"`([^`]+)`", cell):
        stem, _, several = name.partition("{")
        names += [stem + ending for ending in several.rstrip("}").split(",")]
    return names


def test_the_table_names_the_datasets_that_each_scale_reads():
    table = next(part for part in PAGE.split("\n\n") if part.startswith("| scale |"))
    rows = {cells[0]: cells[1:] for cells in re.findall(r"^\| `(\w+)` \|(.*)\|(.*)\|(.*)\|$", table, re.MULTILINE)}
    assert set(rows) == {"demo", "small", "paper"}
    for scale, cells in rows.items():
        project = load_project(SPEECH_ROOT, {"scale": scale, "licensed": {}})
        assert [name for cell in cells for name in listed(cell)] == [project.stand_in(role) for role in ROLES]


def test_every_folder_of_the_users_own_is_of_a_dataset():
    packages = re.findall(r"^ +(own-[\w-]+): /", PAGE, re.MULTILINE)
    datasets = load_project(SPEECH_ROOT).dataset_records
    assert packages and all(package in datasets[package].packages for package in packages)
