"""What was measured for the cells of a table: scores, parameters and costs read from run folders."""

import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.evaluation.error_rates import domain_gap
from pipeline.evaluation.score_file import metric_named, read_statistics
from pipeline.experiment.paper import GapCell, MeasuredCell, ScoreCell
from pipeline.experiment.project import CellRun, Project
from pipeline.kinds.evidence import Sample, sample
from pipeline.products import RunId
from pipeline.records.probes import LayerCosts
from pipeline.records.scores import ScoreFile
from pipeline.records.training import TrainedRun, TrainingCost


@dataclass(frozen=True)
class Measurement:
    """One cell over seeds (and decodings, where several stand for one)."""

    values: list[float]
    low: float | None
    high: float | None
    test_set: str
    signature: str

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def spread(self) -> float | None:
        """Standard deviation over seeds; None for a single value."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None


class RunFolders:
    """Reads what the stages left in the run folders of one scale. A file that is not there is a run not run."""

    def __init__(self, project: Project):
        self.project = project
        scale = Path(project.config.work) / project.config.scale
        self.root, self.layer_times_path = scale / "runs", scale / "layer_times.json"

    def folder(self, run: RunId) -> Path:
        return self.root / run.folder

    def trained(self, run: RunId) -> TrainedRun | None:
        return TrainedRun.read_if_there(self.folder(run) / "trained.json")

    def cost(self, run: RunId) -> TrainingCost | None:
        return TrainingCost.read_if_there(self.folder(run) / "cost.json")

    @property
    def layer_times(self) -> LayerCosts | None:
        """What the stage layer_cost measured at this scale."""
        return LayerCosts.read_if_there(self.layer_times_path)

    def gap(self, cells: list[CellRun], column: GapCell, seeds: list[int]) -> list[float]:
        """The domain gap of each seed; none as long as one of its runs is missing."""
        gaps = []
        for seed in seeds:
            here = [cell for cell in cells if cell.run.seed == seed]
            own = [cell for cell in here if not cell.compared_with]
            found = [self.measure(side, column) for side in (own, *([cell] for cell in here if cell.compared_with))]
            if any(measured is None for measured in found):
                return []
            gaps.append(domain_gap(*(measured.mean for measured in found)))
        return gaps

    def measure(self, cells: list[CellRun], column: MeasuredCell) -> Measurement | None:
        """One cell's scores, or None as long as one of its runs is missing."""
        files = [
            [self.folder(cell.run) / path for path in self.project.files_of(column, [decoding])]
            for cell in cells
            for decoding in cell.decodings
        ]
        scores = [[ScoreFile.read_if_there(path) for path in paths] for paths in files]
        if not scores or any(score is None for several in scores for score in several):
            return None
        metrics = [[score.metrics[column.metric] for score in several] for several in scores]
        low, high = (
            mean_of(getattr(entry, side) for several in metrics for entry in several) for side in ("low", "high")
        )
        if len(column.splits) > 1:
            low, high = self.sample(cells, column).interval
        return Measurement(
            values=[statistics.fmean(entry.value for entry in several) for several in metrics],
            low=low,
            high=high,
            test_set=", ".join(f"{score.test_set} ({score.lines} lines)" for score in scores[0]),
            signature=metrics[0][0].signature,
        )

    def sample(self, cells: list[CellRun], column: ScoreCell) -> Sample:
        """One cell's metric over seeds, with its draws. Raises UserError when a score is missing."""
        paths = [
            [self.folder(cell.run) / path for path in self.project.files_of(column, cell.decodings)] for cell in cells
        ]
        rows = [[read_statistics(path, column.metric) for path in several] for several in paths]
        test_sets = dict.fromkeys(ScoreFile.read(path).test_set for path in paths[0])
        return sample(rows, metric_named(column.metric), ", ".join(test_sets))


def mean_of(values: Any) -> float | None:
    """Mean, or None when a value is missing."""
    values = list(values)
    return None if any(value is None for value in values) else statistics.fmean(values)
