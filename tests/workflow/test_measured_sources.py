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
BY_HAND = re.compile(r"<!-- by hand: \w.*-->\n\n(?:\|.*\n)+")
COMMIT = re.compile(r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{7,12}\b|commits in the table")
NUMBER = re.compile(r"(?<![\w.])[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?")


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


def numbers_of(path: Path) -> set[float]:
    """Return the absolute values of all numbers in the records of a file or folder."""
    files = (
        [path] if path.is_file() else [file for file in path.rglob("*.*") if file.suffix in (".json", ".csv", ".md")]
    )
    return {float(text) for file in files for text in re.findall(r"[0-9]+(?:\.[0-9]+)?", file.read_text("utf-8"))}


@pytest.mark.parametrize(
    "wanted",
    [wanted for _, wanted in TRANSCRIBED if "source" in wanted and not COMMIT.search(wanted["source"])],
    ids=lambda wanted: wanted["file"],
)
def test_numbers_copied_from_records_are_in_these_records(wanted):
    known = set().union(*map(numbers_of, named_records(wanted["source"])))
    with open(RECORDS / wanted["file"], encoding="utf-8", newline="") as file:
        cells = [cell for row in list(csv.reader(file))[1:] for cell in row[1:]]
    for text in (number.replace(",", "") for cell in cells for number in NUMBER.findall(cell)):
        decimals = len(text.partition(".")[2])
        assert any(f"{value * scale:.{decimals}f}" == text for value in known for scale in (1, 100)), text


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
