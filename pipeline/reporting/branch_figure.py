"""Weighted Transformer, Figure 3: kappa and alpha of one encoder layer over a training, smoothed by a mean filter."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from pipeline.experiment.figure import BranchWeights
from pipeline.experiment.project import Project
from pipeline.kinds.measured import RunFolders
from pipeline.kinds.picture import GREY, line_style, new_figure
from pipeline.kinds.training_curves import branch_curves

TITLES = {"kappa": "concatenation weights, κ", "alpha": "addition weights, α"}


def draw(project: Project, paper: str, entry: BranchWeights) -> tuple[Figure, list[dict[str, Any]], str]:
    """(picture, rows, facts) of the run of the first seed."""
    run = project.runs_of(paper, entry.system, entry.dataset)[0]
    model = project.run_spec(run).model
    curves = branch_curves(RunFolders(project).folder(run), entry.layer)
    picture = new_figure(4.2 * len(curves), 3.4)
    panels = picture.subplots(1, len(curves), sharey=True, squeeze=False)[0]
    rows: list[dict[str, Any]] = []
    for axes, curve in zip(panels, curves, strict=True):
        smooth = mean_filter(curve.weights, entry.window)
        for branch in range(smooth.shape[1]):
            axes.plot(curve.steps, smooth[:, branch], linewidth=1.3, label=str(branch + 1), **line_style(branch))
        axes.axhline(1 / smooth.shape[1], color=GREY, linestyle=(0, (4, 3)), linewidth=1.5, zorder=1.5)
        axes.set_title(TITLES[curve.name], fontsize=9)
        axes.set_xlabel("training step (updates)")
        axes.set_ylim(bottom=0)
        rows += [
            {"weight": curve.name, "branch": j + 1, "step": int(step), "value": raw, "smoothed": filtered}
            for j in range(smooth.shape[1])
            for step, raw, filtered in zip(
                curve.steps, curve.weights[:, j].tolist(), smooth[:, j].tolist(), strict=True
            )
        ]
    panels[0].set_ylabel("weight (sums to 1 over branches)")
    panels[-1].legend(title="branch", loc="center left", bbox_to_anchor=(1, 0.5))
    layer, updates = min(entry.layer, model.num_layers), curves[0].steps[0]
    facts = (
        f"Encoder layer {layer} of {model.num_layers}, {smooth.shape[1]} branches, seed {run.seed}. The filter spans "
        f"{entry.window} entries of the log, {entry.window * updates} updates."
    )
    return picture, rows, facts


def mean_filter(values: np.ndarray, window: int) -> np.ndarray:
    """Centred running mean over the first axis; at the ends over the entries that there are."""
    kernel = np.ones(window)
    counts = np.convolve(np.ones(len(values)), kernel, mode="same")
    return np.stack([np.convolve(column, kernel, mode="same") / counts for column in values.T], axis=1)
