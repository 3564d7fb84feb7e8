"""Texts of papers and outputs of models are shown as text, in Markdown and in spreadsheets."""

import csv
import random
import string

import pytest
from markdown_it import MarkdownIt

from pipeline.core.json_csv import as_text, from_text, write_csv
from pipeline.report.markup import plain, prose

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
BLOCKS = ["# a", "## a", "- a", "+ a", "* a", "> a", "1. a", "12) a", "1.", "---", "***", "===", "```", "~~~", "    a"]
BLOCKS += ["[a]: http://b", "[a]: b 'c'", "<div>a</div>", "<!-- a", "| a | b |\n|---|---|", "a\n===", "a\n---", "a\\"]


def paragraph(markdown: str) -> str:
    """Return the text of a document that is one paragraph; fail on anything else."""
    tokens = MARKDOWN.parse(markdown)
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"], markdown
    assert {part.type for part in tokens[1].children} <= {"text"}, markdown
    return "".join(part.content for part in tokens[1].children)


@pytest.mark.parametrize("text", BLOCKS)
def test_prose_is_one_paragraph_of_its_text(text):
    shown = paragraph(prose(text))
    assert shown.split() == text.split()


def test_prose_of_random_text_is_one_paragraph_of_it():
    for _ in range(2000):
        text = "".join(random.choices("a1 \n" + string.punctuation, k=random.randrange(1, 12)))
        if text.strip():
            assert paragraph(prose(text)).split() == text.split(), repr(text)


def test_plain_undoes_prose():
    for _ in range(2000):
        text = "".join(random.choices("a1 " + string.punctuation, k=random.randrange(1, 12))).strip()
        assert plain(prose(text)) == text


@pytest.mark.parametrize("text", ["Scores, 0.12 [0.1, 0.2].", "1.5 times", "2017 it was", "-", "P_drop and d_model"])
def test_prose_leaves_ordinary_text_unchanged(text):
    assert prose(text) == text or plain(prose(text)) == text


FORMULAS = ["=1+1", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "- no", "=", "'=1", "''=1", "+x", "--1"]
NUMBERS = ["-0.5", "+0.5", "-1", "+1e5", "-.5", "-1.5E-3", "0", "12", "-", "+", "", "a=b", "'tis", "–"]


@pytest.mark.parametrize("text", FORMULAS)
def test_formula_is_written_as_text_and_read_back(text):
    assert as_text(text)[0] not in "=+-@\t\r" or len(text) == 1
    assert from_text(as_text(text)) == text


def test_carriage_return_ends_no_row(tmp_path):
    rows = [{"ours": "a\rb"}, {"ours": "\r=1"}]
    write_csv(tmp_path / "a.csv", rows, texts=["ours"])
    assert (tmp_path / "a.csv").read_bytes() == b"ours\na b\n =1\n"


@pytest.mark.parametrize("cell", [*NUMBERS, -0.5, 3, None])
def test_numbers_and_other_texts_stay_as_they_are(cell):
    assert as_text(cell) == cell
    assert not isinstance(cell, str) or from_text(cell) == cell


def test_only_columns_of_outputs_are_written_as_text(tmp_path):
    rows = [{"ours": text, "difference": "+0.5 bleu", "score": -0.5} for text in FORMULAS]
    write_csv(tmp_path / "a.csv", rows, texts=["ours", "absent"])
    with open(tmp_path / "a.csv", newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    assert [row["ours"] for row in found] == [as_text(text) for text in FORMULAS]
    assert {(row["difference"], row["score"]) for row in found} == {("+0.5 bleu", "-0.5")}
