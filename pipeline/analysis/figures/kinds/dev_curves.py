"""Cold Fusion, Figure 2: cross-entropy on the development set over the updates of several trainings."""

from collections.abc import Iterator
from math import isfinite
from typing import Any, Literal

from pydantic import Field

from pipeline.analysis.figures.figure import Drawing, Figure
from pipeline.analysis.names import SystemName
from pipeline.analysis.picture import COLOURS, curve_style, new_figure
from pipeline.analysis.training_curves import loss_curve
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import Product


class DevCurves(Figure):
    """Dev loss over the updates."""

    kind: Literal["dev_curves"]
    systems: list[SystemName] = Field(min_length=1, description="A curve each; the others are compared with the first")

    def needs(self, view: PaperView) -> Iterator[Product]:
        yield from view.trained(self.systems, self.dataset)

    def draw(self, view: PaperView) -> Drawing:
        """A curve a system and seed; a dotted line at the first system's best loss."""
        picture = new_figure(5, 3.6)
        axes = picture.subplots()
        rows: list[dict[str, Any]] = []
        reached: list[str] = []
        first_run = view.runs(self.systems[0], self.dataset)[0]
        level = float(loss_curve(view.layout.run(first_run)).dev.min())
        for number, system in enumerate(self.systems):
            label = view.experiment.system_entry(view.paper, system).description
            for run in (runs := view.runs(system, self.dataset)):
                curve = loss_curve(view.layout.run(run))
                first = run == runs[0]
                style = curve_style(number, marker_size=3) | {"alpha": 1 if first else 0.5, "linewidth": 1.2}
                axes.plot(curve.steps, curve.dev, label=label if first else None, **style)
                rows += [
                    {"system": system, "seed": run.seed, "step": int(step), "dev_loss": dev}
                    for step, dev in zip(curve.steps, curve.dev.tolist(), strict=True)
                ]
                if first:
                    steps = curve.steps_to(level)
                    reached.append(f"{label} after {steps:.0f} updates" if isfinite(steps) else f"not by {label}")
        axes.axhline(level, color=COLOURS[0], linestyle=":", linewidth=1)
        axes.set(xlabel="updates", ylabel="development cross-entropy (nats per symbol)")
        axes.legend()
        facts = f"The dotted line is the first system's lowest loss, {level:.3f} nats, reached by {'; '.join(reached)}."
        return Drawing(picture, rows, facts)
