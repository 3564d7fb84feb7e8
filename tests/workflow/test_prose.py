"""Check that README, documentation and texts of YAML files are plain English: short sentences, no banned words."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prose import BANNED, LONGEST_SENTENCE, long_sentences, split_sentences

from pipeline.core.provenance import ROOT
from pipeline.core.yaml_file import load_yaml

PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
PAGES += sorted(str(path.relative_to(ROOT)) for path in [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/[!m]*/**/*.md")])
PAGES += sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/measured/*.md"))
TEXT_KEYS = {
    "caption",
    "description",
    "here",
    "means",
    "paper",
    "question",
    "stands_in_for",
    "statement",
    "support",
    "why",
}
"""Keys of YAML files whose values are our own prose; quotations and citations have other keys."""
YAML_FILES = [ROOT / "config.yaml", *sorted(ROOT.glob("workflow/**/*.yaml"))]
YAML_FILES = [path for path in YAML_FILES if path.parent.name != "scaffold"]  # templates are not valid YAML
FRAGMENT = re.compile(r"^(Of|What|Whether|Where|Those|That|As|Which|How)\b(?!.*\?)")
"""First words of fragments; a question may start with them."""
LONGEST_AVERAGE, MOST_COMMAS = 20, 1.6
LONG, LARGEST_SHARE_OF_LONG = 30, 0.1
LONGEST_TEST_NAME = 60


def prose(page: str) -> str:
    """Return the sentences of a page without code blocks, tables, comments, headings and link targets."""
    text = (ROOT / page).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$|<!--.*?-->", "", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line for line in text.split("\n") if not line.startswith(("    ", "|", "#", "[!["))]
    return re.sub(r"\]\([^)]*\)", "]", "\n".join(lines))


def sentences(page: str) -> list[str]:
    """Return the sentences of a page; an item of a list and a paragraph end one."""
    items = re.split(r"\n\s*\n|\n\s*(?=[-*] |\d+\. )", prose(page))
    return [sentence for item in items for sentence in split_sentences(item)]


def too_long(page: str) -> list[str]:
    return [sentence for sentence in sentences(page) if len(sentence.split()) > LONGEST_SENTENCE]


def yaml_texts(value: object, key: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from yaml_texts(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from yaml_texts(inner, key)
    elif isinstance(value, str) and key in TEXT_KEYS:
        yield value


def faults_of(text: str) -> list[str]:
    """Return the long sentences, banned words and first words of fragments in a text."""
    return long_sentences(text) + BANNED.findall(text) + FRAGMENT.findall(text)


@pytest.mark.parametrize("page", PAGES)
def test_no_long_sentence_or_banned_word_is_on_a_page(page):
    assert (too_long(page), BANNED.findall(prose(page))) == ([], [])


def test_sentences_are_short_on_average():
    found = [sentence for page in PAGES for sentence in sentences(page)]
    assert sum(len(sentence.split()) for sentence in found) / len(found) <= LONGEST_AVERAGE
    assert sum(sentence.count(",") for sentence in found) / len(found) <= MOST_COMMAS
    assert sum(len(sentence.split()) > LONG for sentence in found) / len(found) <= LARGEST_SHARE_OF_LONG


def test_a_long_sentence_and_a_banned_word_are_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "page.md").write_text(f"Short one. Long{' word' * 39} ends.\n\n- Make it anew.\n\n    code anew\n")
    assert [len(sentence.split()) for sentence in too_long("page.md")] == [41]
    assert BANNED.findall(prose("page.md")) == ["anew"]


@pytest.mark.parametrize("path", YAML_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_texts_of_a_yaml_file_are_plain_english(path):
    assert [fault for text in yaml_texts(load_yaml(path)) for fault in faults_of(text)] == []


def test_faults_of_a_yaml_text_are_found():
    texts = {"why": f"Short one. Long{' word' * 39} ends.", "means": "As printed.", "title": "Made anew"}
    texts |= {"choices": {"here": ["Made anew"]}, "question": "How fast is it?"}
    found = [fault for text in yaml_texts(texts) for fault in faults_of(text)]
    assert [len(fault.split()) for fault in found] == [41, 1, 1] and found[1:] == ["As", "anew"]


def long_test_names(folder: Path) -> list[str]:
    """Return the names of test functions below a folder that have too many characters."""
    sources = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py")))
    names = re.findall(r"^ *def (test_\w+)", sources, re.MULTILINE)
    return [name for name in names if len(name) > LONGEST_TEST_NAME]


def test_a_long_test_name_is_found(tmp_path):
    short, long = (f"test_{'a' * (length - 5)}" for length in (60, 61))
    (tmp_path / "test_toy.py").write_text(f"def {short}(): ...\n\n\nclass TestToy:\n    def {long}(self): ...\n")
    assert long_test_names(tmp_path) == [long]


def test_no_test_name_is_longer_than_60_characters():
    assert long_test_names(ROOT / "tests") == []
