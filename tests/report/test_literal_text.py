"""Text from users, papers and names appears literally in Markdown, HTML and figures."""

import csv
import random
import string
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt
from real_project import real_project

from pipeline.analysis.claims.claim import Findings
from pipeline.analysis.claims.verdicts import ClaimResult, Verdict
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.figures.attention import columns
from pipeline.analysis.figures.figure import new_figure, save
from pipeline.analysis.view import PaperView
from pipeline.core.json_csv import as_text, from_text, write_csv
from pipeline.report.labels import Labels, report_title
from pipeline.report.markup import grid, literal, plain, prose

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
STRANGE = [
    *("a | b", "a \\| b", "a \\\\| b \\", "\\*", "<script>alert(1)</script>", "<!-- hidden", "&lt;unk&gt; &#124;"),
    *("`code` and ``", "*stressed* _so_ __too__ ~~gone~~", "![x](http://y) [z](w)"),
]


def shown(markdown: str) -> list[list[str]]:
    """Return the texts of each row, header first, as a Markdown parser finds them; fail on markup within them."""
    rows: list[list[str]] = []
    for token in MARKDOWN.parse(markdown):
        if token.type == "tr_open":
            rows.append([])
        if token.type == "inline":
            assert {part.type for part in token.children} <= {"text"}, token.content
            rows[-1].append("".join(part.content for part in token.children))
    return rows


@pytest.mark.parametrize("text", STRANGE)
def test_a_cell_is_shown_as_it_is_and_leaves_the_table_whole(text):
    rows = [["name", text], ["one", text], [text, "plain"]]
    assert shown(grid(rows[0], rows[1:])) == rows


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\u2028", "\x85", "\x1b", "\x9b", "\0", "\x7f"])
def test_line_ends_and_control_characters_do_not_leave_a_cell(end):
    assert shown(grid(["x", "y"], [[f"a{end}b", "c"]])) == [["x", "y"], ["a b", "c"]]


@pytest.mark.parametrize("text", ["dev_loss", "0.12 [0.1, 0.2]", "27.3 ± 0.1", "p < 0.05, n > 3", "R&D", "C:\\x", "–"])
def test_ordinary_text_is_unchanged(text):
    assert literal(text) == text


def test_subwords_are_drawn_as_they_are(tmp_path):
    tokens = ["▁$x^2$", "$", "\\alpha", "a_b", "_", "$\\frac{$"]
    figure = new_figure(4, 3)
    axes = figure.add_subplot()
    axes.plot([1, 2], [1, 10], label="$a_b$ \\ _")
    axes.legend()
    columns(axes, tokens, "$title_1$", None)
    figure.add_axes((0, 0, 0.1, 0.1)).set(yscale="log", ylim=(1, 1e4))
    save(figure, tmp_path / "x.svg")
    elements = ElementTree.parse(tmp_path / "x.svg").iter()
    texts = ["".join(element.itertext()) for element in elements if element.tag.endswith("text")]
    expected = {"$x^2$", "·$", "·\\alpha", "·a_b", "·_", "·$\\frac{$", "$title_1$", "$a_b$ \\ _"}
    assert expected <= {*texts} and not any("mathdefault" in text for text in texts)


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


def test_prose_of_random_text_is_one_paragraph_and_is_undone():
    for _ in range(2000):
        text = "".join(random.choices("a1 \n" + string.punctuation, k=random.randrange(1, 12)))
        line = text.replace("\n", " ").strip()
        if line:
            assert paragraph(prose(text)).split() == text.split(), repr(text)
        assert plain(prose(line)) == line


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


@pytest.mark.parametrize("name", ["better-two-layers", "faster-two-layers"])
def test_systems_of_scores_and_trainings_are_named(name):
    project = real_project()
    evidence = Evidence("C − attention/C1", 1.0, 0.5, noise="of 20 trainings of attention/C1")
    found = Findings("attention/C1 3.0, C 4.0", [evidence], "t")
    cause = "9 is high: symbol frequencies alone give less in most vocabularies"
    claim = project.claims["weighted"].claims[name]
    result = ClaimResult(name, claim, "other", Verdict.NOT_TRAINED, f"C: wer of {cause}", found)
    named = Labels(PaperView(project, "weighted")).result(result)
    ours, theirs = "Weighted Transformer, N = 2", "Transformer C"
    assert named.why == f"{ours}: WER of {cause}"
    assert named.found is not None and named.found.ours == f"{theirs} 3.0, {ours} 4.0"
    expected = replace(evidence, name=f"{ours} − {theirs}", noise=f"of 20 trainings of {theirs}")
    assert named.found.evidence == [expected]


def test_reports_have_titles():
    names = ("table2", "figure12", "readings_large", "ablations")
    assert [*map(report_title, names)] == ["Table 2", "Figure 12", "Readings large", "Ablations"]
