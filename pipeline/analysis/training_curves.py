"""Curves of a training, and checks that a system was trained far enough for its numbers to mean something.

Curves are read from a run's `progress.jsonl`: losses at each validation, and branch weights. Three checks follow: the
score is beyond a floor (`workflow/floors.yaml`), the dev loss has reached a plateau, and the system is not overfitted.
The third is only reported.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
from pydantic import Field

from pipeline.analysis.reference_types import MetricName
from pipeline.core.errors import UserError, count_of
from pipeline.core.layout import PROGRESS_FILE
from pipeline.core.records.record import Record, read_lines_as
from pipeline.core.records.training import AnyProgress, MonitorLine, TrainedRun, ValidationLine
from pipeline.core.schema import Closed, Number, load_yaml_as
from pipeline.metrics import metric_named

Line = TypeVar("Line", bound=Record)


@dataclass(frozen=True)
class LossCurve:
    """One point per validation; losses in nats per symbol, without smoothing or dropout."""

    steps: np.ndarray
    train: np.ndarray
    """Loss on the data of the first steps, measured again; NaN if an older version did not measure it."""
    dev: np.ndarray

    def best_dev_within(self, steps: float) -> float:
        """Return the lowest dev loss up to a step, interpolated linearly between validations.

        Args:
            steps: Not before the first validation.
        """
        last = min(steps, self.steps[-1])
        return min(float(self.dev[self.steps <= last].min()), float(np.interp(last, self.steps, self.dev)))

    @property
    def late_gain(self) -> float:
        """Return by which share the lowest dev loss fell over the last fifth of the steps; infinite if unknown."""
        earlier = self.dev[self.steps <= 0.8 * self.steps[-1]]
        return 1 - float(self.dev.min() / earlier.min()) if len(earlier) else float("inf")

    @property
    def rise(self) -> float:
        """Return by which share the last dev loss is above the lowest."""
        return float(self.dev[-1] / self.dev.min()) - 1

    def steps_to(self, dev: float) -> float:
        """Return the steps until the dev loss is first at or below `dev`, interpolated linearly; infinite if never."""
        below = np.flatnonzero(self.dev <= dev)
        if not len(below):
            return float("inf")
        first = below[0]
        if first == 0:
            return float(self.steps[0])
        return float(np.interp(-dev, -self.dev[first - 1 : first + 1], self.steps[first - 1 : first + 1]))


Stack = Literal["encoder", "decoder"]


@dataclass(frozen=True)
class BranchCurve:
    """kappa or alpha of one layer over a training."""

    name: str
    steps: np.ndarray
    weights: np.ndarray
    """Shape (steps, M) for M branches."""

    @property
    def growth(self) -> np.ndarray:
        """Return each weight's final over its initial value, shape (M,); weights below 1e-6 count as 1e-6."""
        first, *_, last = np.maximum(self.weights, 1e-6)
        return last / first

    def spread(self) -> float:
        """Return the largest growth over the smallest; 1 if all weights stay in proportion to their draw."""
        return float(self.growth.max() / self.growth.min())

    def changes_of_rank(self) -> int:
        """Return the number of pairs of branches whose order differs between the draw and the end."""
        above = self.weights[:, :, None] > self.weights[:, None, :]
        return int(np.triu(above[-1] != above[0], 1).sum())

    def smallest_share(self) -> float:
        """Return the smallest growth."""
        return float(self.growth.min())


def read_progress_lines(run_folder: Path, kind: type[Line]) -> list[Line]:
    """Return the lines of one kind from a run's progress log, in order.

    Raises:
        UserError: The log is missing, or a line is faulty.
    """
    lines = read_lines_as(AnyProgress, Path(run_folder) / PROGRESS_FILE, TrainedRun.remedy)
    return [line for line in lines if isinstance(line, kind)]


def loss_curve(run_folder: Path) -> LossCurve:
    """Return the loss curve of a run, one point per validation.

    Raises:
        UserError: The run was never validated.
    """
    records = read_progress_lines(run_folder, ValidationLine)
    if not records:
        raise UserError(f"{run_folder}/progress.jsonl: no validation; lower training.validate_every")
    return LossCurve(
        np.array([record.step for record in records]),
        np.array([record.fit.nll_per_token if record.fit else np.nan for record in records]),
        np.array([record.dev.nll_per_token for record in records]),
    )


def with_training_losses(curve: LossCurve, run_folder: Path) -> LossCurve:
    """Return the `curve` of a run if all its training losses are known.

    Raises:
        UserError: The training loss was not measured.
    """
    if np.isnan(curve.train).any():
        raise UserError(
            f"{run_folder}: an older version trained it and did not measure the loss on training data without dropout; "
            f"`python -m pipeline train --run {shlex.quote(str(run_folder))} --restart` trains it again"
        )
    return curve


def branch_curves(run_folder: Path, layer: int, stack: Stack = "encoder") -> list[BranchCurve]:
    """Return a curve each for kappa and alpha of one layer, in the order of the log.

    Args:
        run_folder: Folder of the run.
        layer: Number of the layer from 1; the last one if there are fewer.
        stack: Side of the model that the layer is in.

    Raises:
        UserError: The log has branch weights of fewer than two steps.
    """
    records = read_progress_lines(run_folder, MonitorLine)
    if len(records) < 2:
        raise UserError(
            f"{run_folder}/progress.jsonl: branch weights of {count_of(len(records), 'step')}, at least 2 are needed; "
            "if its model has branches, train the run again"
        )
    names = records[0].values
    layers = sorted({int(name.split(".")[1]) for name in names if name.startswith(f"{stack}.")})
    chosen = min(layer, len(layers)) - 1
    steps = np.array([record.step for record in records])
    prefix = f"{stack}.{layers[chosen]}."
    return [
        BranchCurve(name.removeprefix(prefix), steps, np.array([record.values[name] for record in records]))
        for name in names
        if name.startswith(prefix)
    ]


def mean_gap(lower: LossCurve, upper: LossCurve) -> float | None:
    """Return the mean of upper's minus lower's dev loss at equal training loss; None if they share no training loss.

    Both curves are taken on their way down: validations whose training loss is above an earlier one are left out.
    """
    ours, theirs = (descent(curve) for curve in (lower, upper))
    low = max(ours[0][0], theirs[0][0])
    high = min(ours[0][-1], theirs[0][-1])
    if low >= high:
        return None
    grid = np.linspace(low, high, 200)
    return float(np.mean(np.interp(grid, *theirs) - np.interp(grid, *ours)))


def mean_gaps(lower: Sequence[LossCurve], upper: Sequence[LossCurve]) -> np.ndarray | None:
    """Return `mean_gap` of every pair, shape (lower, upper); None if a pair has none."""
    gaps = [[mean_gap(curve, other) for other in upper] for curve in lower]
    return None if any(gap is None for row in gaps for gap in row) else np.array(gaps, dtype=float)


def curve_gaps(curves: Sequence[LossCurve]) -> list[float]:
    """Return how far each curve of one system is above their mean: its run-to-run variance."""
    gaps = mean_gaps(curves, curves)
    return [] if gaps is None else gaps.mean(axis=0).tolist()


def descent(curve: LossCurve) -> tuple[np.ndarray, np.ndarray]:
    """Return training losses in rising order and their dev losses, without validations above an earlier one."""
    falling = curve.train <= np.minimum.accumulate(curve.train)
    return curve.train[falling][::-1], curve.dev[falling][::-1]


PLATEAU = 0.005
"""At its plateau, a system's lowest dev loss falls by less than this share over the last fifth of its steps."""
OVER_FITTED = 0.05
"""An overfitted system's last dev loss is above its lowest by at least this share."""

System = tuple[str, str]
"""Name of a system, and the dataset that it is trained on."""


class Floor(Closed):
    """The score of one metric that a trained system has to beat."""

    reach: Number = Field(description="A score has to be better than this to count as trained")
    why: str = Field(description="Reason why a worse score means that the system has not learnt")


Floors = dict[MetricName, Floor]
"""Floors by metric; other metrics have none."""


def load_floors(path: Path) -> Floors:
    """Return the floors of `workflow/floors.yaml` by metric.

    Raises:
        UserError: A key is unknown or a value is bad.
    """
    return load_yaml_as(Floors, path)


def below_floor(floors: Floors, metric: str, score: float) -> str:
    """Return why a system with this score does not count as trained; empty if it does.

    Args:
        floors: Floors by metric.
        metric: Name of the metric.
        score: Score of the system in the unit of the metric.
    """
    floor, sign = floors.get(metric), metric_named(metric).sign
    if floor is None or sign * score > sign * floor.reach:
        return ""
    return f"{metric} of {score:.4g} is not better than {floor.reach:g}: {floor.why}"


def not_at_plateau(systems: Iterable[System], curves: Mapping[System, Sequence[LossCurve]]) -> str:
    """Name the first system whose dev loss still fell, and by which share; empty if there is none."""
    for system in systems:
        if (gain := float(np.mean([curve.late_gain for curve in curves[system]]))) >= PLATEAU:
            fell = f"fell by {gain:.1%} over" if np.isfinite(gain) else "was not measured before"
            return f"{system[0]}: its dev loss {fell} the last fifth of its steps"
    return ""


def over_fitted(curves: Mapping[System, Sequence[LossCurve]]) -> str:
    """Name each system that ended far above its lowest dev loss, and by which share; empty if there is none."""
    rises = [(system, np.mean([curve.rise for curve in of_seeds])) for (system, _), of_seeds in curves.items()]
    return "; ".join(
        f"{system}: its dev loss ended {by:.0%} above its lowest" for system, by in rises if by >= OVER_FITTED
    )
