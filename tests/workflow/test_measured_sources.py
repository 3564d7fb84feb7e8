"""Sources of the tables of measured results: commits that exist, and records that have the figures."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from copied_project import ROOT

sys.path.insert(0, str(ROOT / "docs"))
import measured_tables

PAGES = sorted(measured_tables.MEASURED.glob("*.md"))
DIRECTIVES = [
    (page.name, yaml.safe_load(found[1]))
    for page in PAGES
    for found in measured_tables.TABLE.findall(page.read_text(encoding="utf-8"))
]
BY_HAND = re.compile(r"<!-- by hand: \w.*-->\n\n\|.*\n\|[-|: ]+\n((?:\|.*\n)+)")
COMMIT = re.compile(r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{7,12}\b|commits in the table")
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
        assert COMMIT.search(source) or named_records(source), (page, wanted)


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


HASH = re.compile(r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{7,12}\b")


def git(*words: str, text: str = "") -> str:
    """Run git here, and skip the test without the whole history."""
    done = subprocess.run(["git", "-C", ROOT, *words], input=text, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no git checkout: {done.stderr.strip()}")
    return done.stdout


def test_named_commits_are_in_the_history():
    if git("rev-parse", "--is-shallow-repository").strip() != "false":
        pytest.skip("a shallow checkout")
    readme = (RECORDS / "README.md").read_text(encoding="utf-8")
    (lost,) = re.findall(r"^Commits (.*?) are not in the history", readme, re.MULTILINE)
    named = sorted({name for page in PAGES for name in HASH.findall(page.read_text(encoding="utf-8"))})
    found = git("cat-file", "--batch-check", text="".join(f"{name}^{{commit}}\n" for name in named)).splitlines()
    unknown = {name for name, line in zip(named, found, strict=True) if line.split()[1] != "commit"}
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
