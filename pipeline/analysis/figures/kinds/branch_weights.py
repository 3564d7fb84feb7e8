"""Weighted Transformer, Figure 3: kappa and alpha of one encoder layer over a training, smoothed by a mean filter."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from pydantic import Field

from pipeline.analysis.figures.figure import Drawing, Figure
from pipeline.analysis.names import SystemName
from pipeline.analysis.picture import GREY, line_style, new_figure
from pipeline.analysis.training_curves import branch_curves
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import Product
from pipeline.core.schema import Count
from pipeline.models.transformer.settings import AnyTransformerConfig

TITLES = {"kappa": "concatenation weights, κ", "alpha": "addition weights, α"}


class BranchWeights(Figure):
    """kappa and alpha of one encoder layer over a training."""

    kind: Literal["branch_weights"]
    system: SystemName
    layer: Count = Field(description="Encoder layer; the last one where there are fewer")
    window: Count = Field(description="Entries of the progress log that the mean filter spans")

    def needs(self, view: PaperView) -> Iterator[Product]:
        yield from view.trained([self.system], self.dataset)

    def draw(self, view: PaperView) -> Drawing:
        """Of the run of the first seed."""
        run = view.runs(self.system, self.dataset)[0]
        curves, model = branch_curves(view.layout.run(run), self.layer), view.experiment.run_spec(run).model
        assert isinstance(model, AnyTransformerConfig), "it has branches"
        picture = new_figure(4.2 * len(curves), 3.4)
        panels = picture.subplots(1, len(curves), sharey=True, squeeze=False)[0]
        rows: list[dict[str, Any]] = []
        for axes, curve in zip(panels, curves, strict=True):
            smooth = mean_filter(curve.weights, self.window)
            branches = smooth.shape[1]
            for branch in range(branches):
                axes.plot(curve.steps, smooth[:, branch], linewidth=1.3, label=str(branch + 1), **line_style(branch))
            axes.axhline(1 / branches, color=GREY, linestyle=(0, (4, 3)), linewidth=1.5, zorder=1.5)
            axes.set_title(TITLES[curve.name], fontsize=9)
            axes.set(xlabel="training step (updates)", ylim=(0, None))
            pairs = zip(curve.weights.T.tolist(), smooth.T.tolist(), strict=True)
            rows += [
                {"weight": curve.name, "branch": number, "step": int(step), "value": raw, "smoothed": filtered}
                for number, pair in enumerate(pairs, start=1)
                for step, raw, filtered in zip(curve.steps, *pair, strict=True)
            ]
        panels[0].set_ylabel("weight (sums to 1 over branches)")
        panels[-1].legend(title="branch", loc="center left", bbox_to_anchor=(1, 0.5))
        facts = (
            f"Encoder layer {min(self.layer, model.num_layers)} of {model.num_layers}, {branches} branches, "
            f"seed {run.seed}. The filter spans {self.window} entries of the log, "
            f"{self.window * (curves[0].steps[1] - curves[0].steps[0])} updates."
        )
        return Drawing(picture, rows, facts)


def mean_filter(values: np.ndarray, window: int) -> np.ndarray:
    """Centred running mean over the first axis; at the ends over the entries that there are."""
    centred = slice((window - 1) // 2, (window - 1) // 2 + len(values))
    counts, *sums = (np.convolve(one, np.ones(window))[centred] for one in (np.ones(len(values)), *values.T))
    return np.stack(sums, axis=1) / counts[:, None]
