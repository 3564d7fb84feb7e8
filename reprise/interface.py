"""The Python API behind `import reprise`: trained models, and measured results as data frames.

    import reprise
    model = reprise.open_run("attention/base/wmt14-en-de/1", scale="small")
    model.translate(["A dog sleeps."])
    reprise.table("attention", "table2", scale="small")

Keyword arguments are keys of config.yaml. torch is loaded with the first model, not before. Errors raise
`pipeline.core.errors.UserError`, with one line that says what to do.
"""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pandas import DataFrame, Series, to_numeric

from pipeline.analysis.training_curves import loss_curve
from pipeline.core.errors import count_of
from pipeline.core.schema import require_known
from pipeline.papers.project import Project
from pipeline.report.claims import results_in_words, row_of
from pipeline.report.filled_table import UNFINISHED, fill
from pipeline.workflow.targets import snakemake_command
from reprise.find_runs import find_project, find_run

if TYPE_CHECKING:
    from reprise.model import Model


log = logging.getLogger(__name__)


def open_run(name: str | Path, decoding: str = "", threads: int | None = None, **settings: Any) -> "Model":
    """Return a trained model with `translate(lines)`, `parse(lines)` or `transcribe(samples, rate)`.

    Args:
        name: `paper/system/dataset/seed`, a run's folder, or a folder that `reprise pack` wrote.
        decoding: As for `--decoding` on the command line; "" means the decoding of the paper's table.
        threads: CPU threads; None means all cores that this process may use.
        settings: Keys that replace those of config.yaml.

    Raises:
        UserError: There is no such model, or it is damaged.
    """
    from reprise.opening import open_model

    return open_model(name, decoding, settings, threads)


def table(paper: str, name: str, **settings: Any) -> DataFrame:
    """Return a table of a paper as in its CSV, filled in with current results; NaN marks empty cells.

    Args:
        paper: Name of the paper.
        name: Name of the table.
        settings: Keys that replace those of config.yaml.
    """
    project = find_project(settings)
    require_known(paper, project.papers, "paper")
    return with_numbers(warn_of_missing(project, paper, fill(project, paper, name).frame))


def claims(paper: str, **settings: Any) -> DataFrame:
    """Return the claims of a paper as in their CSV: printed evidence, ours, p-value, verdict.

    Args:
        paper: Name of the paper.
        settings: Keys that replace those of config.yaml.
    """
    project = find_project(settings)
    require_known(paper, project.papers, "paper")
    return with_numbers(warn_of_missing(project, paper, DataFrame(claim_rows(project, paper))))


def claim_rows(project: Project, paper: str) -> list[dict[str, str]]:
    """Return the rows of the CSV, in the order of claims.yaml."""
    return [row_of(claim) for claim in results_in_words(project, paper)]


def curves(run: str, **settings: Any) -> DataFrame:
    """Return the losses of a training by step, in nats per symbol without smoothing.

    Args:
        run: `paper/system/dataset/seed`, or a run's folder.
        settings: Keys that replace those of config.yaml.

    Returns:
        Columns `train` and `dev`, indexed by step. Both losses are measured without dropout.
    """
    curve = loss_curve(find_run(run, settings).folder)
    return DataFrame({"train": curve.train, "dev": curve.dev}, index=Series(curve.steps, name="step"))


def warn_of_missing(project: Project, paper: str, frame: DataFrame) -> DataFrame:
    """Warn of rows without all their numbers, with the command that makes them.

    Args:
        project: The project at its scale.
        paper: Name of the paper.
        frame: A table or claims of the paper.

    Returns:
        The frame.
    """
    if missing := int(frame.isin(UNFINISHED).any(axis=1).sum()):
        scale, command = project.config.scale, snakemake_command(project, paper)
        lacking = count_of(missing, f"of {len(frame)} rows lacks", f"of {len(frame)} rows lack")
        log.warning("%s: %s numbers at scale %s; `%s`", paper, lacking, scale, command)
    return frame


def with_numbers(frame: DataFrame) -> DataFrame:
    """Convert columns that hold only numbers; empty cells become NaN. A commit stays text, even one of digits alone."""
    filled = frame.replace("", np.nan)
    numbers = filled.apply(to_numeric, errors="coerce")
    whole = (numbers.notna().sum() == filled.notna().sum()) & (frame.columns != "commit")
    return filled.assign(**{str(name): numbers[name] for name in frame.columns[whole]})
