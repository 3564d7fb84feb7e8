"""What was measured for the cells of a table: scores, parameters and costs read from run folders."""

import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.experiment.paper import ScoreCell
from pipeline.experiment.project import CellRun, Project, RunId
from pipeline.files import read_json


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
        scale = Path(project.config.work) / project.config.scale
        self.root, self.layer_times_path = scale / "runs", scale / "layer_times.json"

    def folder(self, run: RunId) -> Path:
        return self.root / run.folder

    def trained(self, run: RunId) -> dict[str, Any] | None:
        return self.optional(self.folder(run) / "trained.json")

    def cost(self, run: RunId) -> dict[str, Any] | None:
        """Totals over all starts of a training, and where it ran."""
        starts = self.starts(run)
        if not starts:
            return None
        hours = sum(start["seconds"] * start["processes"] for start in starts) / 3600
        devices = dict.fromkeys(f"{start['processes']} x {start['device']}" for start in starts)
        total = read_json(self.folder(run) / "cost.json")["total"]
        return total | {"device_hours": hours, "hardware": "; ".join(devices)}

    def starts(self, run: RunId) -> list[dict[str, Any]]:
        """Every start of a training; none when it did not run."""
        record = self.optional(self.folder(run) / "cost.json")
        return record["starts"] if record else []

    @property
    def layer_times(self) -> dict[str, Any] | None:
        """What the stage layer_cost measured at this scale."""
        return self.optional(self.layer_times_path)

    @staticmethod
    def optional(path: Path) -> dict[str, Any] | None:
        return read_json(path) if path.exists() else None

    def measure(self, cells: list[CellRun], column: ScoreCell) -> Measurement | None:
        """One cell's scores, or None as long as one of its runs is missing."""
        files = [self.folder(cell.run) / column.file(decoding) for cell in cells for decoding in cell.decodings]
        scores = [self.optional(path) for path in files]
        if not scores or any(score is None for score in scores):
            return None
        metrics = [score["metrics"][column.metric] for score in scores]
        return Measurement(
            values=[entry["value"] for entry in metrics],
            low=mean_of(entry["low"] for entry in metrics),
            high=mean_of(entry["high"] for entry in metrics),
            test_set=f"{scores[0]['test_set']} ({scores[0]['lines']} lines)",
            signature=metrics[0]["signature"],
        )


def mean_of(values: Any) -> float | None:
    """Mean, or None when a value is missing."""
    values = list(values)
    return None if any(value is None for value in values) else statistics.fmean(values)
