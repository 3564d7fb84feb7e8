"""Alignments of speech recognisers during training: α of one utterance at several checkpoints, and mean entropy."""

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from pipeline.analysis.figures.figure import Drawing, Figure, curve_style, new_figure
from pipeline.analysis.names import SystemName
from pipeline.analysis.run_folders import RunFolders
from pipeline.analysis.view import PaperView
from pipeline.core import artifacts as products
from pipeline.core.records.probes import AlignmentMaps

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

PANELS = 5
LABEL_WIDTH = 24
"""Characters of a line in a label beside a panel."""


class Alignments(Figure):
    """Attention over speech at several checkpoints of a training."""

    kind: Literal["alignments"]
    systems: list[SystemName] = Field(min_length=1, description="A row of panels each")
    split: Literal["dev", "test"] = "dev"

    def needs(self, view: PaperView) -> Iterator[products.Alignments]:
        """Yield the alignments of the first seed."""
        for system in self.systems:
            yield products.Alignments(view.runs(system, self.dataset)[0], self.split)

    def draw(self, view: PaperView) -> Drawing:
        """Draw a row of panels for each system, and the curves of their entropies below."""
        folders = RunFolders(view)
        records = [folders.alignment_maps(product) for product in self.needs(view)]
        labels = [view.experiment.system_entry(view.paper, system).description for system in self.systems]
        picture = panels(labels, records)
        rows = [
            {"system": system, "step": step, "entropy": entropy}
            for system, record in zip(self.systems, records, strict=True)
            for step, entropy in zip(record.steps, record.entropy, strict=True)
        ]
        first = records[0]
        facts = (
            f'The utterance drawn is "{first.text}"; entropies are means over {first.utterances} utterances of '
            f"the {first.split} set, teacher-forced."
        )
        return Drawing(picture, rows, facts)


def panels(labels: list[str], records: list[AlignmentMaps]) -> "Picture":
    """Draw all panels.

    Args:
        labels: Name of each system.
        records: Alignments of each system.
    """
    picture = new_figure(1.7 * PANELS, 1.7 * len(records) + 2.2)
    grid = picture.add_gridspec(len(records) + 1, PANELS, height_ratios=[*[1.0] * len(records), 1.2])
    for row, (label, record) in enumerate(zip(labels, records, strict=True)):
        for column, index in enumerate(spread(len(record.steps))):
            axes = picture.add_subplot(grid[row, column])
            axes.imshow(record.maps[index], aspect="auto", cmap="Greys", vmin=0, vmax=1)
            axes.set_title(f"{record.steps[index]} updates", fontsize=8)
            axes.set(xticks=[], yticks=[])
            axes.grid(False)
            if column == 0:
                axes.set_ylabel("\n".join([*wrap(label, LABEL_WIDTH), "characters"]), fontsize=7)
            if row == len(records) - 1:
                axes.set_xlabel("encoder positions", fontsize=7)
    axes = picture.add_subplot(grid[-1, :])
    for number, (label, record) in enumerate(zip(labels, records, strict=True)):
        axes.plot(record.steps, record.entropy, label=label, **curve_style(number, marker_size=3))
    axes.set(xlabel="updates", ylabel="entropy of α (nats)")
    axes.legend()
    return picture


def spread(count: int) -> list[int]:
    """Choose at most PANELS of `count` indices, dense at the beginning, where alignments form."""
    return np.unique((np.linspace(0, 1, PANELS) ** 2 * (count - 1)).round().astype(int)).tolist()
