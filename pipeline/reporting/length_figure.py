"""Multi-channel Encoder, Figure 3: BLEU of the sentences longer than some length."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from pipeline.experiment.figure import BleuByLength
from pipeline.experiment.project import Project
from pipeline.kinds.lengths import source_lengths
from pipeline.kinds.measured import RunFolders
from pipeline.kinds.picture import COLOURS, MARKERS, new_figure
from pipeline.metrics import metric_named
from pipeline.metrics.statistics.score_file import read_statistics
from pipeline.metrics.statistics.significance import bootstrap_interval
from pipeline.products import RunId

FEWEST = 20
"""Sentences without which a score says nothing; a point of fewer is left out."""


def draw(project: Project, paper: str, entry: BleuByLength) -> tuple[Figure, list[dict[str, Any]], str]:
    """(picture, rows, facts): a curve a system, a point a length; BLEU of all sentences that are longer, as one set."""
    lengths = source_lengths(project.corpus(project.stand_in(entry.dataset)), entry.splits)
    chosen = sampled(len(lengths), entry)
    kept = {words: chosen[lengths[chosen] > words] for words in entry.longer_than}
    shown = {words: indices for words, indices in kept.items() if len(indices) >= FEWEST}
    picture = new_figure(5, 3.6)
    axes = picture.subplots()
    rows = []
    for number, system in enumerate(entry.systems):
        runs = project.runs_of(paper, system, entry.dataset)
        points = [measured(project, entry, runs, indices) for indices in shown.values()]
        owner, name = project.locate(system, paper)
        axes.plot(
            list(shown),
            [point["bleu"] for point in points],
            color=COLOURS[number],
            marker=MARKERS[number],
            markersize=4,
            linewidth=1.2,
            label=name if owner == paper else system,
        )
        rows += [
            {"system": system, "longer_than": words, "sentences": len(indices), **point}
            for (words, indices), point in zip(shown.items(), points, strict=True)
        ]
    axes.set_xticks(list(shown))
    axes.set_xlabel("source sentences longer than (words)")
    axes.set_ylabel("BLEU")
    axes.legend()
    return picture, rows, facts(kept, len(chosen), len(lengths))


def sampled(total: int, entry: BleuByLength) -> np.ndarray:
    """Numbers of the sentences in the sample, in rising order."""
    generator = np.random.default_rng(entry.seed)
    return np.sort(generator.choice(total, min(total, entry.sentences), replace=False))


def measured(project: Project, entry: BleuByLength, runs: list[RunId], indices: np.ndarray) -> dict[str, float]:
    """BLEU and its interval, both the mean over seeds."""
    folders, metric = RunFolders(project), metric_named(entry.metric)
    found = []
    for run in runs:
        rows = np.concatenate([read_statistics(folders.folder(run) / path, entry.metric) for path in entry.files])
        found.append(bootstrap_interval(rows[indices], metric.total))
    return {
        "bleu": float(np.mean([one.value for one in found])),
        "low": float(np.mean([one.low for one in found])),
        "high": float(np.mean([one.high for one in found])),
    }


def facts(kept: dict[int, np.ndarray], sample: int, total: int) -> str:
    counts = ", ".join(f"{len(indices)} longer than {words}" for words, indices in kept.items())
    left_out = f"Points of fewer than {FEWEST} sentences are left out."
    return f"{sample} of {total} sentences drawn at random: {counts}. {left_out}"
