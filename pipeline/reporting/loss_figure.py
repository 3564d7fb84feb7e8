"""Weighted Transformer, Figure 2: dev loss against training loss of several systems."""

from typing import Any

from matplotlib.figure import Figure

from pipeline.experiment.figure import LossCurves
from pipeline.experiment.project import Project
from pipeline.kinds.measured import RunFolders
from pipeline.kinds.picture import COLOURS, MARKERS, new_figure
from pipeline.kinds.training_curves import fit_curve


def draw(project: Project, paper: str, entry: LossCurves) -> tuple[Figure, list[dict[str, Any]], str]:
    """(picture, rows, facts): a curve a system and seed, in the order of training from right to left."""
    folders = RunFolders(project)
    picture = new_figure(5, 4)
    axes = picture.subplots()
    rows, steps = [], []
    for number, system in enumerate(entry.systems):
        owner, name = project.locate(system, paper)
        label = project.papers[owner].systems[name].description
        for run in project.runs_of(paper, system, entry.dataset):
            curve = fit_curve(folders.folder(run))
            first = run.seed == project.config.seed_list[0]
            axes.plot(
                curve.train,
                curve.dev,
                color=COLOURS[number],
                marker=MARKERS[number],
                markersize=4,
                linewidth=1.2,
                alpha=1 if first else 0.5,
                label=f"{label_of(owner, label)} ({curve.steps[-1]} steps)" if first else None,
            )
            rows += [
                {"system": system, "seed": run.seed, "step": int(step), "train_loss": train, "dev_loss": dev}
                for step, train, dev in zip(curve.steps, curve.train.tolist(), curve.dev.tolist(), strict=True)
            ]
        steps.append(f"{system} {curve.steps[-1]}")
    axes.invert_xaxis()
    axes.set_xlabel("loss on training data (nats per subword)")
    axes.set_ylabel("development loss (nats per subword)")
    axes.legend()
    facts = f"Training goes from left to right. Steps: {', '.join(steps)}; {len(rows)} validations drawn."
    return picture, rows, facts


def label_of(paper: str, description: str) -> str:
    """The paper's own words; those of the Transformer's table are symbols alone."""
    return f"Transformer, {description}" if paper == "attention" else description
