"""Artifacts that each report of a paper needs, and the check that all of them resolve."""

import math
from itertools import chain
from typing import TYPE_CHECKING

from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import Artifact, Encoded, RunId, Score, Transcript, Translation
from pipeline.core.errors import UserError
from pipeline.papers.reading import check_readings

if TYPE_CHECKING:
    from pipeline.papers.project import Project


def table_artifacts(project: "Project", paper: str, table: str) -> list[Artifact]:
    """Return the artifacts that a table is filled from."""
    view, cells = PaperView(project, paper), project.table(paper, table).cells.values()
    rows = project.printed[paper][table]
    return list(dict.fromkeys(artifact for row in rows for cell in cells for artifact in cell.needs(view, row)))


def transcript_artifacts(project: "Project", paper: str, table: str) -> list[Artifact]:
    """Return the artifacts of a table of transcripts: the corpus and each system's transcripts."""
    corpus = project.stand_in(project.transcript_table(paper, table).scored_on)
    return [Encoded(corpus), *dict.fromkeys(transcripts(project, paper, table).values())]


def transcripts(project: "Project", paper: str, table: str) -> dict[str, Transcript]:
    """Return the transcripts that a table shows or selects utterances by.

    Returns:
        Transcripts of the first seed by system.
    """
    entry = project.transcript_table(paper, table)
    named = (entry.chosen_by, *(row["system"] for row in project.printed[paper][table] if row["system"]))
    runs = {system: project.runs_of(paper, system, entry.dataset)[0] for system in named}
    corpus = project.stand_in(entry.scored_on)
    return {system: Transcript(run, entry.decoding, entry.split, corpus) for system, run in runs.items()}


def example_runs(project: "Project", paper: str, table: str) -> dict[str, RunId]:
    """Return the run of each row of a table of example translations.

    Returns:
        Runs of the first seed by row.
    """
    dataset = project.examples(paper, table).dataset
    rows = [row for row in project.printed[paper][table] if row["source"] == "ours-to-run"]
    return {row["item"]: project.runs_of(paper, row["system"], dataset)[0] for row in rows}


def example_artifacts(project: "Project", paper: str, table: str) -> list[Artifact]:
    """Return the artifacts of a table of examples: the corpus, its translations and their scores."""
    entry, runs = project.examples(paper, table), example_runs(project, paper, table).values()
    found: list[Artifact] = [Encoded(project.stand_in(entry.dataset))]
    for run in runs:
        found += [Translation(run, entry.decoding, split) for split in entry.splits]
        found += [Score(run, "scores", entry.decoding, split) for split in entry.splits]
    return list(dict.fromkeys(found))


def figure_artifacts(project: "Project", paper: str, figure: str) -> list[Artifact]:
    """Return the artifacts that a figure is drawn from."""
    return list(dict.fromkeys(project.figure(paper, figure).needs(PaperView(project, paper))))


def claim_artifacts(project: "Project", paper: str) -> list[Artifact]:
    """Return the artifacts that a paper's claims need at this scale, including all trainings."""
    claims, view = project.claims[paper], PaperView(project, paper)
    tested = [claim for claim in claims.claims.values() if claim.is_tested(project.config.scale)]
    return list(dict.fromkeys(artifact for claim in tested for artifact in claim.needs(view, claims.scores)))


def check_all(project: "Project") -> None:
    """Resolve every run and report of a project once.

    Raises:
        UserError: A value is bad; the message names the paper, system or cell.
    """
    dataset = next(name for name in project.scale.datasets.values() if name not in project.dataset_records.faults)
    for paper, record in project.papers.items():
        for system in record.systems:
            project.run_spec(RunId(paper, system, dataset, 0))
        check_readings(project, paper)
        artifacts = [table_artifacts(project, paper, table) for table in project.tables_here(paper)]
        artifacts += [figure_artifacts(project, paper, figure) for figure in record.figures]
        artifacts += [example_artifacts(project, paper, table) for table in record.examples]
        artifacts += [transcript_artifacts(project, paper, table) for table in record.transcripts]
        for artifact in chain(*artifacts, claim_artifacts(project, paper)):
            if isinstance(artifact, Score | Translation | Transcript):
                project.decoding_language_model(artifact.run, artifact.decoding)
                _check_weights(project, artifact.run, artifact.decoding)
                _check_checkpoints(project, artifact.run, artifact.decoding)


def _check_weights(project: "Project", run: RunId, name: str) -> None:
    """Check the language model weight of a decoding.

    Raises:
        UserError: The weight is 0, or is to be tuned for a model that does not read speech.
    """
    decoding, where = project.decoding(run.paper, run.system, name), f"{project.where(run)}: decodings.{name}: "
    if decoding.zero_weight_fault:
        raise UserError(where + decoding.zero_weight_fault)
    if decoding.tuned and project.run_spec(run).model.reads != "speech":
        raise UserError(f"{where}lm_weights are for speech; set lm_weight")


def _check_checkpoints(project: "Project", run: RunId, name: str) -> None:
    """Check that a training writes the checkpoints that a decoding averages, as it would fail after the training.

    Raises:
        UserError: It keeps too few, or has no development loss of each.
    """
    decoding, training = project.decoding(run.paper, run.system, name), project.run_spec(run).training
    every, validated = training.checkpoint_every, training.validate_every
    kept = min(training.keep_checkpoints, math.ceil(training.max_steps / every))
    where = f"{project.where(run)}: decodings.{name}: "
    if decoding.averaged == "best" and kept > 1 and every % validated:  # the last step is validated in any case
        raise UserError(
            f"{where}averaged: best needs a checkpoint_every (here {every}) that is a multiple of validate_every (here "
            f"{validated}); rules of a scale may set both"
        )
    if decoding.average_last > kept:
        raise UserError(
            f"{where}average_last: {decoding.average_last} are more checkpoints than its training keeps; lower it, or "
            f"change max_steps (here {training.max_steps}), checkpoint_every (here {every}) or keep_checkpoints (here "
            f"{training.keep_checkpoints})"
        )
