"""Names that YAML would misread are quoted, and a refused `reprise new` leaves no files."""

import random
from pathlib import Path

import pytest
import yaml
from copied_project import copy_project

from pipeline.core.yaml_file import parse_yaml, yaml_text
from pipeline.data.dataset import load_dataset
from pipeline.papers.project import load_project
from pipeline.workflow.targets import changed_settings
from reprise import scaffold
from reprise.__main__ import main as reprise

WORDS = ["no", "yes", "on", "off", "true", "false", "null", "y", "n", "nan", "e1"]


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    """Return a project with two files of text in two languages beside it."""
    root = copy_project(tmp_path / "project")
    for side, words in (("a", "one two three four"), ("b", "eins zwei drei vier")):
        lines = (" ".join([word, *random.choices(words.split(), k=5)]) + "." for word in map(str, range(60)))
        (tmp_path / f"{side}.txt").write_text("".join(f"{line}\n" for line in lines))
    monkeypatch.chdir(root)
    return root


def texts(*languages: str) -> list[str]:
    return ["--src", "../a.txt", "--tgt", "../b.txt", "--split", "0.5/0.2/0.3", "--languages", *languages]


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


def test_norwegian_is_written_as_text(root):
    assert reprise(["new", "dataset", "mine", *texts("de", "no")]) == 0
    assert load_dataset(root / "workflow/datasets/mine.yaml").tgt == "no"


@pytest.mark.parametrize("word", ["no", "yes", "null"])
def test_dataset_and_paper_may_be_called_as_yaml_words(root, word):
    assert reprise(["new", "dataset", word, *texts("de", "en")]) == 0
    assert reprise(["new", "paper", f"{word}-paper", "--dataset", word]) == 0
    assert reprise(["new", "paper", word, "--dataset", word]) == 0
    project = load_project(root, {"paper": word})
    assert {cell.dataset for cell in project.table(word, "table1").cells.values()} == {word}
    assert not [fault for fault in project.dataset_records.faults.values() if f"/{word}.yaml" in str(fault)]
    assert yaml.safe_load(changed_settings(project)[0].strip("'").partition("=")[2]) == word


@pytest.mark.parametrize("words", [["dataset", "mine", *texts("de", "de")], ["paper", "mine", "--dataset", "nothing"]])
def test_refused_new_leaves_nothing_behind(root, words, capsys):
    before = files_in(root)
    assert reprise(["new", *words]) == 1
    assert files_in(root) == before and "Traceback" not in capsys.readouterr().err


def test_paper_that_does_not_load_is_removed_again(root, capsys, monkeypatch):
    before = files_in(root)
    monkeypatch.setitem(scaffold.BASES["sentences"], "metric", "no-metric")
    assert reprise(["new", "paper", "mine", "--dataset", "grammar-smoke-en-de"]) == 1
    assert "no-metric" in capsys.readouterr().err and files_in(root) == before
    load_project(root)


def test_dataset_that_does_not_load_is_removed_with_its_splits(root, capsys, monkeypatch):
    before = files_in(root)
    monkeypatch.setattr("reprise.cli.new.yaml_text", lambda text: "{")
    assert reprise(["new", "dataset", "mine", *texts("de", "en")]) == 1
    assert files_in(root) - before <= {root / "data"} and "mine.yaml" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["dataset", "paper"])
def test_name_of_300_characters_is_refused_in_one_line(root, what, capsys):
    before = files_in(root)
    words = texts("de", "en") if what == "dataset" else ["--dataset", "grammar-smoke-en-de"]
    assert reprise(["new", what, "a" * 300, *words]) == 1
    assert "at most 60 lower-case letters" in capsys.readouterr().err and files_in(root) == before


def test_files_with_long_names_become_a_dataset(root, tmp_path):
    long = {side: (tmp_path / f"{side}.txt").rename(tmp_path / f"{side}{'x' * 240}.{side}") for side in "ab"}
    sides = ["--src", str(long["a"]), "--tgt", str(long["b"]), "--languages", "de", "en"]
    both = [str(long["a"]), str(long["b"])]
    assert reprise(["new", "dataset", "mine", *sides, "--dev", *both, "--test", *both]) == 0
    names = load_dataset(root / "workflow/datasets/mine.yaml").sources
    assert len(names) == 2 or len(names) == 6
    assert max(map(len, names)) <= 200
