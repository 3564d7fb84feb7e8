"""Figures of attention: single heads of a Transformer, and alignments of speech recognisers.

The first are Figures 3 to 5 of Attention Is All You Need: two columns of words, a line for each weight. The second show
α of one utterance at several checkpoints of a training, and its entropy, a mean over utterances.
"""

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from pipeline.analysis.figures.figure import COLOURS, Drawing, Figure, curve_style, new_figure
from pipeline.analysis.reference_types import DecodingName, ScoredSplit, SystemName
from pipeline.analysis.run_folders import RunFolders
from pipeline.analysis.view import PaperView
from pipeline.core import artifacts
from pipeline.core.errors import count_of
from pipeline.core.records.outputs import AlignmentMaps, AttentionMap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

LEAST = 0.02
"""Smallest weight that is drawn as a line; squares and the CSV have all weights."""
FITTING = 8
"""Characters of a subword that have room beside the lines."""
CHARACTER = 0.07
"""Width of a character, in units of the distance between the columns."""
UNIT = 1.16
"""Distance between the columns in inches."""


class AttentionHeads(Figure):
    """Attention distributions of single heads of one encoder layer on a sentence chosen by a rule."""

    kind: Literal["attention_heads"]
    system: SystemName
    split: ScoredSplit = "test"
    decoding: DecodingName = Field(description="Decoding whose weights, averaged or not, are used")
    rule: Literal["distant", "pronoun", "contrast"] = Field(
        description="distant: sentence and word whose heads attend farthest; pronoun: pronoun that two heads resolve "
        "most sharply; contrast: two heads that differ most"
    )

    def needs(self, view: PaperView) -> Iterator[artifacts.Artifact]:
        yield self.maps(view)

    def maps(self, view: PaperView) -> artifacts.AttentionMaps:
        """Return the attention maps of the first seed."""
        return artifacts.AttentionMaps(view.runs(self.system, self.dataset)[0], self.decoding, self.split, self.rule)

    def draw(self, view: PaperView) -> Drawing:
        """Draw the panels of words that the rule asks for."""
        record = RunFolders(view).attention_map(self.maps(view))
        tokens, heads, query = record.tokens, record.heads, record.query
        panels, room = panels_of(self.rule, heads, query), room_for(tokens)
        width = (2.5 + 2 * room) * len(panels) + (1.12 if len(panels) == 1 else 0)
        picture = new_figure(UNIT * width, 0.24 * len(tokens) + 0.8)
        grid = picture.subplots(1, len(panels), squeeze=False)[0]
        for axes, (title, shown, queries) in zip(grid, panels, strict=True):
            columns(axes, tokens, title, query if queries == [query] else None)
            for head in shown:
                lines(axes, record.weights[heads.index(head)], queries, heads.index(head))
            if len(shown) > 1 and query is not None:
                squares(axes, record.weights, heads, query, 1.6 + room)
        rows = [
            {"head": head + 1, "query": i, "query_token": tokens[i], "key": j, "key_token": tokens[j], "weight": weight}
            for head, weights in zip(heads, record.weights, strict=True)
            for i, row in enumerate(weights)
            for j, weight in enumerate(row)
        ]
        return Drawing(picture, rows, map_facts(record))


def panels_of(rule: str, heads: list[int], query: int | None) -> list[tuple[str, list[int], list[int] | None]]:
    """Return the panels of a figure of attention heads.

    Args:
        rule: Rule that chose the sentence, as in `AttentionHeads`.
        heads: Heads to be drawn, from 0.
        query: Position of the word that the rule chose; None if it chose none.

    Returns:
        For each panel its title, its heads and the positions of its queries; None: all positions.
    """
    word = [] if query is None else [query]
    if rule == "distant":
        return [("", heads, word)]
    if rule == "contrast":
        return [(f"head {head + 1}", [head], None) for head in heads]
    return [(f"head {heads[0] + 1}", heads[:1], None)] + [
        (f"head {head + 1}, one word", [head], word) for head in heads
    ]


def room_for(tokens: list[str]) -> float:
    """Return the further width of a column whose subwords are long, in units of the distance between the columns."""
    return CHARACTER * max(0, max(len(shown_as(token)) for token in tokens) - FITTING)


def columns(axes: "Axes", tokens: list[str], title: str, query: int | None) -> None:
    """Draw a column of queries on the left and one of keys on the right.

    Args:
        axes: The panel.
        tokens: Subwords of the sentence.
        title: Title of the panel.
        query: Position of the query that is printed in bold; None: none.
    """
    for place, token in enumerate(tokens):
        weight = "bold" if place == query else "normal"
        axes.text(-0.03, place, shown_as(token), ha="right", va="center", fontsize=8, fontweight=weight)
        axes.text(1.03, place, shown_as(token), ha="left", va="center", fontsize=8)
    room = room_for(tokens)
    axes.set(xlim=(-0.75 - room, 1.75 + room), ylim=(len(tokens) - 0.4, -0.6))
    axes.set_title(title, fontsize=9)
    axes.axis("off")


def shown_as(token: str) -> str:
    """Mark a subword that continues a word with a middle dot; a lone word-start mark is kept."""
    return token.removeprefix("▁") or token if token.startswith(("▁", "</")) else f"·{token}"


def lines(axes: "Axes", weights: list[list[float]], queries: list[int] | None, number: int) -> None:
    """Draw lines from queries on the left to keys on the right, as opaque as their weight.

    Args:
        axes: The panel.
        weights: Attention weights of one head, shape (n, n).
        queries: Positions of the queries; None: all.
        number: Number of the head, which gives the colour.
    """
    for query in range(len(weights)) if queries is None else queries:
        for place, weight in enumerate(weights[query]):
            if weight >= LEAST:
                colour = COLOURS[number % len(COLOURS)]
                axes.plot((0, 1), (query, place), color=colour, alpha=min(1.0, weight), linewidth=1.6)
    axes.grid(False)


def squares(axes: "Axes", weights: list[list[list[float]]], heads: list[int], query: int, left: float) -> None:
    """Draw a column of squares for each head right of the keys, because lines of several heads hide one another.

    Args:
        axes: The panel.
        weights: Attention weights, shape (heads, n, n).
        heads: Numbers of the heads, from 0.
        query: Position of the query whose weights are drawn.
        left: Left edge of the first column.
    """
    from matplotlib.patches import Rectangle

    step = min(0.09, 1.2 / len(heads))
    for number, head in enumerate(heads):
        edge, colour = left + step * number, COLOURS[number % len(COLOURS)]
        axes.text(edge + step / 2, -1.1, str(head + 1), color=colour, ha="center", va="center", fontsize=7)
        for place, weight in enumerate(weights[number][query]):
            corner = (edge + 0.01, place - 0.35)
            axes.add_patch(Rectangle(corner, step - 0.02, 0.7, facecolor=colour, alpha=min(1.0, weight)))
    axes.text(left + step * len(heads) / 2, -1.9, "head", ha="center", va="center", fontsize=7)
    axes.set(xlim=(axes.get_xlim()[0], left + 0.05 + step * len(heads)), ylim=(len(weights[0][0]) - 0.4, -2.2))


def map_facts(record: AttentionMap) -> str:
    """Describe layer, sentence and word for the caption."""
    word = "" if record.query is None else f' The word is "{shown_as(record.tokens[record.query])}".'
    if record.rule == "pronoun" and not record.pronoun:
        word += " No sentence has a pronoun with words before it, so it is the sharpest word of all."
    return (
        f"Encoder layer {record.layer} of {record.layers}; sentence {record.sentence + 1} of the "
        f"{record.split} set, in subwords; a middle dot continues a word. Weights below {LEAST:g} have no "
        f"line.{word}"
    )


PANELS = 5
LABEL_WIDTH = 24
"""Characters of a line in a label beside a panel."""


class Alignments(Figure):
    """Attention over speech at several checkpoints of a training."""

    kind: Literal["alignments"]
    systems: list[SystemName] = Field(min_length=1, description="One row of panels each")
    split: Literal["dev", "test"] = "dev"

    def needs(self, view: PaperView) -> Iterator[artifacts.Alignments]:
        """Yield the alignments of the first seed."""
        for system in self.systems:
            yield artifacts.Alignments(view.runs(system, self.dataset)[0], self.split)

    def draw(self, view: PaperView) -> Drawing:
        """Draw a row of panels for each system, and the curves of their entropies below."""
        folders = RunFolders(view)
        records = [folders.alignment_maps(artifact) for artifact in self.needs(view)]
        labels = [view.experiment.system_entry(view.paper, system).description for system in self.systems]
        picture = panels(labels, records)
        rows = [
            {"system": system, "step": step, "entropy": entropy}
            for system, record in zip(self.systems, records, strict=True)
            for step, entropy in zip(record.steps, record.entropy, strict=True)
        ]
        first = records[0]
        facts = (
            f'The utterance drawn is "{first.text}"; entropies are means over '
            f"{count_of(first.utterances, 'utterance')} of the {first.split} set, teacher-forced."
        )
        return Drawing(picture, rows, facts)


def panels(labels: list[str], records: list[AlignmentMaps]) -> "Picture":
    """Draw a row of alignments for each system, and the entropies of all systems below."""
    picture = new_figure(1.7 * PANELS, 1.7 * len(records) + 2.2)
    largest = max(float(np.max(record.maps[index])) for record in records for index in spread(len(record.steps)))
    grid = picture.add_gridspec(len(records) + 1, PANELS, height_ratios=[*[1.0] * len(records), 1.2])
    for row, (label, record) in enumerate(zip(labels, records, strict=True)):
        for column, index in enumerate(spread(len(record.steps))):
            axes = picture.add_subplot(grid[row, column])
            axes.imshow(record.maps[index], aspect="auto", cmap="Greys", vmin=0, vmax=largest)
            axes.set_title(count_of(record.steps[index], "step"), fontsize=8)
            axes.set(xticks=[], yticks=[])
            axes.grid(False)
            if column == 0:
                axes.set_ylabel("\n".join([*wrap(label, LABEL_WIDTH), "characters"]), fontsize=7)
            if row == len(records) - 1:
                axes.set_xlabel("encoder positions", fontsize=7)
    axes = picture.add_subplot(grid[-1, :])
    for number, (label, record) in enumerate(zip(labels, records, strict=True)):
        axes.plot(record.steps, record.entropy, label=label, **curve_style(number, marker_size=3))
    axes.set(xlabel="steps", ylabel="entropy of α (nats)")
    axes.legend()
    return picture


def spread(count: int) -> list[int]:
    """Choose at most PANELS of `count` indices, dense at the beginning, where alignments form."""
    return np.unique((np.linspace(0, 1, PANELS) ** 2 * (count - 1)).round().astype(int)).tolist()
