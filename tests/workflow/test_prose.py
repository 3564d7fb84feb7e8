"""Check that README and documentation are plain English: short sentences, no banned words."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
PAGES += sorted(str(path.relative_to(ROOT)) for path in [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/[!m]*/**/*.md")])
PAGES += sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/measured/*.md"))
LONGEST_SENTENCE, LONGEST_AVERAGE, MOST_COMMAS = 32, 20, 1.6
BANNED = re.compile(
    r"\b(anew|in the place of|by heart|of before|of then|whoever|is told|told from nothing|goes? on again|"
    r"what is given|take[sn]? up again)\b",
    re.IGNORECASE,
)


def prose(page: str) -> str:
    """Return the sentences of a page without code blocks, tables, comments, headings and link targets."""
    text = (ROOT / page).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$|<!--.*?-->", "", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line for line in text.split("\n") if not line.startswith(("    ", "|", "#", "[!["))]
    return re.sub(r"\]\([^)]*\)", "]", "\n".join(lines))


def sentences(page: str) -> list[str]:
    """Return the sentences of a page; an item of a list and a paragraph end one."""
    items = re.split(r"\n\s*\n|\n\s*(?=[-*] |\d+\. )", prose(page))
    found = [part for item in items for part in re.split(r"(?<=[.!?:;])\s+(?=[A-Z`*\[0-9])", " ".join(item.split()))]
    return [sentence for sentence in found if len(sentence.split()) > 2]


@pytest.mark.parametrize("page", PAGES)
def test_no_sentence_of_a_page_is_too_long(page):
    assert [one for one in sentences(page) if len(one.split()) > LONGEST_SENTENCE] == []


@pytest.mark.parametrize("page", PAGES)
def test_no_banned_word_is_on_a_page(page):
    assert BANNED.findall(prose(page)) == []


def test_sentences_are_short_on_average():
    found = [one for page in PAGES for one in sentences(page)]
    assert sum(len(one.split()) for one in found) / len(found) <= LONGEST_AVERAGE
    assert sum(one.count(",") for one in found) / len(found) <= MOST_COMMAS


def test_a_long_sentence_and_a_banned_word_are_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "page.md").write_text(f"Short one. Long{' word' * 39} ends.\n\n- Make it anew.\n\n    code anew\n")
    assert [len(one.split()) for one in sentences("page.md") if len(one.split()) > LONGEST_SENTENCE] == [41]
    assert BANNED.findall(prose("page.md")) == ["anew"]
