"""Pages of the documentation: tables from records and their sources, navigation, and datasets of speech."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from copied_project import ROOT
from real_project import real_project

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


PAGE = (ROOT / "docs/speech.md").read_text(encoding="utf-8")
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
    assert set(rows) == {"demo", "small", "medium", "paper"}
    for scale, cells in rows.items():
        project = real_project({"scale": scale, "licensed": {}})
        assert [name for cell in cells for name in listed(cell)] == [project.stand_in(role) for role in ROLES]


def test_every_folder_of_the_users_own_is_of_a_dataset():
    packages = re.findall(r"^ +(own-[\w-]+): /", PAGE, re.MULTILINE)
    datasets = real_project().dataset_records
    assert packages and all(package in datasets[package].packages for package in packages)


DIRECTIVES = [
    (page.name, yaml.safe_load(found[1]))
    for page in PAGES
    for found in measured_tables.TABLE.findall(page.read_text(encoding="utf-8"))
]
BY_HAND = re.compile(r"<!-- by hand: \w.*-->\n\n\|.*\n\|[-|: ]+\n((?:\|.*\n)+)")
HASH = re.compile(r"\b(?<!SEED=)(?=[0-9a-f]*[0-9])[0-9a-f]{7,12}\b")
NUMBER = re.compile(r"(?<![\w.])-?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?")
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
LINK = re.compile(r"\]\(([\w-]+\.md)\)")


def named_records(source: str) -> list[Path]:
    """Return the files and folders of docs/measured that a text names."""
    return [path for word in re.findall(r"[\w./-]+", source) if word.strip(".") and (path := RECORDS / word).exists()]


RECORDS = measured_tables.MEASURED
TRANSCRIBED = [(page, wanted) for page, wanted in DIRECTIVES if {"source", "derived"} & wanted.keys()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_table_stands_on_a_page_without_its_records(page):
    text = page.read_text(encoding="utf-8")
    left = BY_HAND.sub("", measured_tables.TABLE.sub("", text))
    assert not re.findall(r"^\|.*", left, re.MULTILINE)


def test_transcribed_tables_name_a_commit_or_records():
    assert {wanted["file"] for _, wanted in TRANSCRIBED} == {
        str(path.relative_to(RECORDS)) for path in (RECORDS / "tables").glob("*.csv")
    }
    for page, wanted in TRANSCRIBED:
        source = wanted.get("source") or wanted["derived"]
        assert HASH.search(source) or "commits in the table" in source or named_records(source), (page, wanted)


def numbers(text: str) -> list[str]:
    """Return the numbers of a text without separators of thousands."""
    return [number.replace(",", "") for number in NUMBER.findall(text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_figures_in_tables_by_hand_are_on_the_linked_page(page):
    for row in "".join(BY_HAND.findall(page.read_text(encoding="utf-8"))).splitlines():
        figures = set(numbers(LINK.sub("", row)))
        if figures:
            (linked,) = LINK.findall(row)
            text = (RECORDS / linked).read_text(encoding="utf-8")
            words = set(re.findall(r"\w+", text.lower()))
            spelled = {str(number) for number, word in enumerate(WORDS) if word in words}
            assert figures <= {*numbers(text), *spelled}, row


def copied_file(wanted: dict) -> Path | None:
    """Return the one record that a table copies, if its source is one file."""
    named = named_records(wanted.get("source", ""))
    return named[0] if len(named) == 1 and named[0].is_file() else None


COPIES = [wanted for _, wanted in TRANSCRIBED if copied_file(wanted)]


def rounds_to(value: str, shown: str) -> bool:
    """Return whether a recorded number, rounded to the shown decimals, is the shown one."""
    decimals = len(shown.partition(".")[2])
    return abs(float(value) - float(shown)) <= 0.5 * 10**-decimals + 1e-9


def is_row_of(figures: list[str], cells: list[str]) -> bool:
    """Return whether a row of a record has all figures, each in another place than the one before."""
    left = [number for cell in cells for number in numbers(cell)]
    for figure in figures:
        found = next((number for number in left if rounds_to(number, figure)), None)
        if found is None:
            return False
        left.remove(found)
    return True


def test_rows_of_copied_tables_are_rows_of_their_record():
    assert len(COPIES) >= 3
    for wanted in COPIES:
        lines = copied_file(wanted).read_text(encoding="utf-8").splitlines()
        records = [line.split("|") for line in lines if line.startswith("|")]
        with open(RECORDS / wanted["file"], encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                label, *columns = (name for name in row if name not in wanted.get("elsewhere", []))
                figures = [number for name in columns for number in numbers(row[name])]
                assert figures and any(is_row_of(figures, cells) for cells in records), (wanted["file"], row[label])


def test_a_figure_is_found_in_one_row_and_by_its_rounding():
    cells = ["x", "19.45", "-12.92–+10.26"]
    assert is_row_of(["19.5", "10.26", "-12.92"], cells)
    for figures in (["19.4", "19.5"], ["19.6"], ["12.92"], ["1945"], ["0.19"]):
        assert not is_row_of(figures, cells)


def git(*words: str) -> str:
    """Run git here, and skip the test without the whole history."""
    done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no git checkout: {done.stderr.strip()}")
    return done.stdout


def test_named_commits_are_in_the_history():
    if git("rev-parse", "--is-shallow-repository").strip() != "false":
        pytest.skip("a shallow checkout")
    readme = (RECORDS / "README.md").read_text(encoding="utf-8")
    (lost,) = re.findall(r"^Commits (.*?) are not in the history", readme, re.MULTILINE)
    named = {name for page in PAGES for name in HASH.findall(page.read_text(encoding="utf-8"))}
    history = git("rev-list", "HEAD")  # other commits may be here too, such as those of a branch that was rebased
    unknown = {name for name in named if f"\n{name}" not in f"\n{history}"}
    assert unknown == set(HASH.findall(lost))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_text_above_a_table_names_no_other_commit(page):
    text = page.read_text(encoding="utf-8")
    for found in measured_tables.TABLE.finditer(text):
        wanted = yaml.safe_load(found[2])
        source = wanted.get("source") or wanted.get("derived")
        above = set(HASH.findall(text[: found.start()].rstrip().rsplit("\n\n", 1)[-1]))
        shown = set(HASH.findall(found[0].partition("-->")[2]))
        if source:
            assert above <= set(HASH.findall(source)), (wanted["file"], above)
            assert shown <= set(HASH.findall(source)) or "commits in the table" in source, (wanted["file"], shown)
