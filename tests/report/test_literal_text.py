"""Texts of data, names and transcripts are shown literally, in Markdown and in figures."""

import xml.etree.ElementTree as ElementTree

import pytest
from markdown_it import MarkdownIt

from pipeline.analysis.figures.attention import columns
from pipeline.analysis.figures.figure import new_figure, save
from pipeline.report.markup import grid, literal

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
STRANGE = [
    "a | b",
    "a \\| b",
    "a \\\\| b \\",
    "<script>alert(1)</script>",
    "<!-- hidden",
    "&lt;unk&gt; &#124;",
    "`code` and ``",
    "*stressed* _so_ __too__ ~~gone~~",
    "![x](http://y) [z](w)",
    "\\*",
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
    assert shown(grid(["name", text], [["one", text], [text, "plain"]])) == [
        ["name", text],
        ["one", text],
        [text, "plain"],
    ]


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
    logarithmic = figure.add_axes((0, 0, 0.1, 0.1))
    logarithmic.set(yscale="log", ylim=(1, 1e4))
    save(figure, tmp_path / "x.svg")
    texts = [
        "".join(element.itertext())
        for element in ElementTree.parse(tmp_path / "x.svg").iter()
        if element.tag.endswith("text")
    ]
    for expected in ["$x^2$", "·$", "·\\alpha", "·a_b", "·_", "·$\\frac{$", "$title_1$", "$a_b$ \\ _"]:
        assert expected in texts
    assert not any("mathdefault" in text for text in texts)
