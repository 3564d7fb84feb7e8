"""Cold Fusion, Figure 2: cross-entropy on the development set over the updates of several trainings."""

from typing import Any

from matplotlib.figure import Figure

from pipeline.experiment.figure import DevCurves
from pipeline.experiment.project import Project
from pipeline.kinds.measured import RunFolders
from pipeline.kinds.picture import COLOURS, MARKERS, new_figure
from pipeline.kinds.training_curves import loss_curve


def draw(project: Project, paper: str, entry: DevCurves) -> tuple[Figure, list[dict[str, Any]], str]:
    """(picture, rows, facts): a curve a system and seed; a dotted line at the first system's best loss."""
    folders, picture = RunFolders(project), new_figure(5, 3.6)
    axes = picture.subplots()
    rows, reached = [], []
    level = None
    for number, system in enumerate(entry.systems):
        label = project.system_entry(paper, system).description
        for run in project.runs_of(paper, system, entry.dataset):
            curve = loss_curve(folders.folder(run))
            first = run.seed == project.config.seed_list[0]
            style = {"color": COLOURS[number], "marker": MARKERS[number], "markersize": 3, "linewidth": 1.2}
            axes.plot(curve.steps, curve.dev, alpha=1 if first else 0.5, label=label if first else None, **style)
            rows += [
                {"system": system, "seed": run.seed, "step": int(step), "dev_loss": dev}
                for step, dev in zip(curve.steps, curve.dev.tolist(), strict=True)
            ]
            if first:
                level = float(curve.dev.min()) if level is None else level
                reached.append(f"{label} after {curve.steps_to(level):.0f} updates")
    axes.axhline(level, color=COLOURS[0], linestyle=":", linewidth=1)
    axes.set(xlabel="updates", ylabel="development cross-entropy (nats per character)")
    axes.legend()
    facts = f"The dotted line is the first system's lowest loss, {level:.3f} nats, reached by {'; '.join(reached)}."
    return picture, rows, facts
