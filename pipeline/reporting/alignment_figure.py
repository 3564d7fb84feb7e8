"""Alignments of recognisers over their trainings: α of one utterance at several checkpoints, and its mean entropy."""

from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from pipeline.experiment.figure import Alignments
from pipeline.experiment.project import Project
from pipeline.kinds.picture import COLOURS, MARKERS, new_figure
from pipeline.records.probes import AlignmentMaps

PANELS = 5
LABEL_WIDTH = 24
"""Characters of a line beside a panel."""


def draw(
    project: Project, paper: str, entry: Alignments, paths: list[Path]
) -> tuple[Figure, list[dict[str, Any]], str]:
    """(picture, rows, facts); paths: one file a system, written by the stage `alignments`."""
    records = [AlignmentMaps.read(path) for path in paths]
    labels = [project.system_entry(paper, system).description for system in entry.systems]
    picture = new_figure(1.7 * PANELS, 1.7 * len(records) + 2.2)
    grid = picture.add_gridspec(len(records) + 1, PANELS, height_ratios=[*[1.0] * len(records), 1.2])
    for row, (label, record) in enumerate(zip(labels, records, strict=True)):
        for column, index in enumerate(spread(len(record.steps))):
            axes = picture.add_subplot(grid[row, column])
            axes.imshow(np.array(record.maps[index]), aspect="auto", cmap="Greys", vmin=0, vmax=1)
            axes.set_title(f"{record.steps[index]} updates", fontsize=8)
            axes.set(xticks=[], yticks=[])
            axes.grid(False)
            if column == 0:
                axes.set_ylabel("\n".join([*wrap(label, LABEL_WIDTH), "characters"]), fontsize=7)
            if row == len(records) - 1:
                axes.set_xlabel("encoder positions", fontsize=7)
    axes = picture.add_subplot(grid[-1, :])
    for number, (label, record) in enumerate(zip(labels, records, strict=True)):
        style = {"color": COLOURS[number], "marker": MARKERS[number], "markersize": 3}
        axes.plot(record.steps, record.entropy, label=label, **style)
    axes.set(xlabel="updates", ylabel="entropy of α (nats)")
    axes.legend()
    rows = [
        {"system": system, "step": step, "entropy": entropy}
        for system, record in zip(entry.systems, records, strict=True)
        for step, entropy in zip(record.steps, record.entropy, strict=True)
    ]
    first = records[0]
    facts = (
        f'The utterance drawn is "{first.text}"; entropies are means over {first.utterances} utterances of the '
        f"{first.split} set, teacher-forced."
    )
    return picture, rows, facts


def spread(count: int) -> list[int]:
    """At most PANELS indices of `count`, dense at the beginning, where alignments form."""
    places = np.unique((np.linspace(0, 1, PANELS) ** 2 * (count - 1)).round().astype(int))
    return places.tolist()
