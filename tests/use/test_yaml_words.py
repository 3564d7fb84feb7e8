"""Names that YAML would misread are quoted, and a refused `reprise new` leaves no files."""

import random
from pathlib import Path

import pytest
import yaml

from pipeline.core.yaml_file import parse_yaml, yaml_text
from pipeline.data.dataset import load_dataset
from pipeline.papers.project import load_project
from pipeline.workflow.targets import changed_settings
from reprise import scaffold
from reprise.__main__ import main as reprise

WORDS = ["no", "yes", "on", "off", "true", "false", "null", "y", "n", "nan", ".inf", "e1"]


@pytest.fixture(autouse=True)
def text_files(root) -> None:
    """Write two files of text in two languages."""
    for side, words in (("a", "one two three four"), ("b", "eins zwei drei vier")):
        lines = (" ".join([word, *random.choices(words.split(), k=5)]) + "." for word in map(str, range(60)))
        (root / f"{side}.txt").write_text("".join(f"{line}\n" for line in lines))


def texts(*languages: str) -> list[str]:
    return ["--src", "a.txt", "--tgt", "b.txt", "--split", "0.5/0.2/0.3", "--languages", *languages]


def files_in(root: Path) -> set[Path]:
    return {path for top in ("workflow", "data") for path in (root / top).rglob("*")}


@pytest.mark.parametrize("text", [*WORDS, "1", "1e5", "0x1", "~", "a: b", "a #b", "- a", "{a}", "[", "", " a", '"'])
def test_yaml_text_reads_back_as_the_same_text(text):
    for document in (f"key: {yaml_text(text)}", f"{{key: {yaml_text(text)}}}"):
        assert parse_yaml(document, "") == yaml.safe_load(document) == {"key": text}


def test_yaml_text_of_random_text_reads_back_in_any_context():
    for _ in range(500):
        text = "".join(random.choices("no ye:#,[]{}'\"\\&*!|>%@`~-?.0aé漢", k=random.randrange(12)))
        assert yaml.safe_load(f"{{key: {yaml_text(text)}}}") == {"key": text}


@pytest.mark.parametrize("word", ["no", "null"])
def test_dataset_and_paper_may_be_called_as_yaml_words(root, word):
    assert reprise(["new", "dataset", word, *texts("de", "en")]) == 0
    assert reprise(["new", "paper", f"{word}-paper", "--dataset", word]) == 0
    assert reprise(["new", "paper", word, "--dataset", word]) == 0
    project = load_project(root, {"paper": word})
    assert {cell.dataset for cell in project.table(word, "table1").cells.values()} == {word}
    assert not [fault for fault in project.dataset_records.faults.values() if f"/{word}.yaml" in str(fault)]
    assert yaml.safe_load(changed_settings(project)[0].strip("'").partition("=")[2]) == word


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["dataset", "mine", *texts("de", "de")], "error: "),
        (["paper", "mine", "--dataset", "nothing"], "error: "),
        (["dataset", "a" * 300, *texts("de", "en")], "at most 60 lower-case letters"),
        (["paper", "a" * 300, "--dataset", "grammar-smoke-en-de"], "at most 60 lower-case letters"),
    ],
)
def test_refused_new_leaves_nothing_behind(root, words, message, refused):
    before = files_in(root)
    said = refused("new", *words)
    assert message in said and "Traceback" not in said and files_in(root) == before


def test_paper_that_does_not_load_is_removed_again(root, refused, monkeypatch):
    before = files_in(root)
    monkeypatch.setitem(scaffold.BASES["sentences"], "metric", "no-metric")
    assert "no-metric" in refused("new", "paper", "mine", "--dataset", "grammar-smoke-en-de")
    assert files_in(root) == before
    load_project(root)


def test_files_with_long_names_become_a_dataset(root):
    src, tgt = both = [str(Path(f"{side}.txt").rename(f"{side}{'x' * 240}.{side}")) for side in "ab"]
    sides = ["--src", src, "--tgt", tgt, "--languages", "de", "en"]
    assert reprise(["new", "dataset", "mine", *sides, "--dev", *both, "--test", *both]) == 0
    names = load_dataset(root / "workflow/datasets/mine.yaml").sources
    assert len(names) == 2 or len(names) == 6
    assert max(map(len, names)) <= 200
