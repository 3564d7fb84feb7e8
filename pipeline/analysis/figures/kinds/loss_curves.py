"""Weighted Transformer, Figure 2: dev loss against training loss of several systems."""

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from pipeline.analysis.figures.figure import Drawing, Figure
from pipeline.analysis.names import SystemName
from pipeline.analysis.picture import curve_style, new_figure
from pipeline.analysis.training_curves import fit_curve
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import Product


class LossCurves(Figure):
    """Dev loss against training loss, a point a validation."""

    kind: Literal["loss_curves"]
    systems: list[SystemName] = Field(min_length=1, description="A curve each")

    def needs(self, view: PaperView) -> Iterator[Product]:
        yield from view.trained(self.systems, self.dataset)

    def draw(self, view: PaperView) -> Drawing:
        """A curve a system and seed, in the order of training from right to left."""
        picture = new_figure(5, 4)
        axes = picture.subplots()
        rows: list[dict[str, Any]] = []
        steps = []
        for number, system in enumerate(self.systems):
            for run in (runs := view.runs(system, self.dataset)):
                curve = fit_curve(view.layout.run(run))
                first = run == runs[0]
                label = f"{label_of(view, system)} ({curve.steps[-1]} steps)" if first else None
                axes.plot(
                    curve.train, curve.dev, alpha=1 if first else 0.5, label=label, linewidth=1.2, **curve_style(number)
                )
                rows += [
                    {"system": system, "seed": run.seed, "step": int(step), "train_loss": train, "dev_loss": dev}
                    for step, train, dev in zip(curve.steps, curve.train.tolist(), curve.dev.tolist(), strict=True)
                ]
            steps.append(f"{system} {curve.steps[-1]}")
        axes.invert_xaxis()
        axes.set(xlabel="loss on training data (nats per symbol)", ylabel="development loss (nats per symbol)")
        axes.legend()
        facts = f"Training goes from left to right. Steps: {', '.join(steps)}; {len(rows)} validations drawn."
        return Drawing(picture, rows, facts)


def label_of(view: PaperView, system: str) -> str:
    """The paper's own words; those of the Transformer's table are symbols alone."""
    description = view.experiment.system_entry(view.paper, system).description
    owner, _ = view.experiment.locate(system, view.paper)
    return f"Transformer, {description}" if owner == "attention" else description
