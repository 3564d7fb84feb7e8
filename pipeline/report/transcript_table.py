"""Transcripts of a few utterances next to the paper's own examples."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
from pandas import DataFrame

from pipeline.core.artifacts import Transcript
from pipeline.core.errors import UserError
from pipeline.data.sequence_store import TokenStore
from pipeline.data.text.text_files import read_lines
from pipeline.data.text.vocabulary import Alphabet
from pipeline.metrics.error_rates import WER, Transcripts
from pipeline.papers.paper import TranscriptTable
from pipeline.papers.project import Project, ProjectOptions
from pipeline.papers.reports import transcripts
from pipeline.report.labels import NOTHING
from pipeline.report.markup import literal, paragraphs, prose, write_twins

log = logging.getLogger(__name__)
TEXTS = ("example", "model", "printed", "ours")


def write_transcript_table(*, paper: str, table: str, out: Path, project: ProjectOptions) -> None:
    """Compare transcripts of a few utterances with those that the paper prints.

        python -m pipeline transcript-table --paper coldfusion --table table1 --out results/demo/coldfusion/table1.csv

    Write the CSV (example, model, printed, utterance, ours, word_errors, run) and a Markdown twin. The utterances are
    those with enough words on which one system, named by the paper's file, makes the most word errors. Ties go to the
    first. Transcripts are those of the first seed.

    Args:
        paper: Name of a paper in workflow/papers.
        table: Name of a table of the paper.
        out: CSV to write, with a Markdown twin beside it.
        project: The project and its settings.
    """
    loaded = project.load([paper])
    rows = example_rows(loaded, paper, table)
    write_twins(out, rows, render(loaded, paper, table, rows), TEXTS)
    log.info("%s: %d texts", out, len(rows))


def example_rows(project: Project, paper: str, table: str) -> list[dict[str, Any]]:
    """Return the printed examples in their order with each model's text; empty if a run is missing."""
    entry, printed = project.transcript_table(paper, table), project.printed[paper][table]
    texts = Texts(project, entry, transcripts(project, paper, table))
    places = list(dict.fromkeys(row["example"] for row in printed))
    chosen = texts.choose_utterances(len(places))
    rows = []
    for row in printed:
        number = chosen[places.index(row["example"])] if chosen else None
        found = (
            {"ours": "", "word_errors": "", "run": ""} if number is None else texts.transcript(row["system"], number)
        )
        named = {"example": row["example"], "model": row["model"], "printed": row["prediction"]}
        rows.append(named | {"utterance": "" if number is None else number + 1} | found)
    return rows


class Texts:
    """References and transcripts of the scored split.

    Attributes:
        made: Transcript of each system.
        scored_on: Dataset of the split at this scale.
        references: Reference of each utterance.
    """

    def __init__(self, project: Project, entry: TranscriptTable, made: dict[str, Transcript]):
        self.entry, self.made, self.layout = entry, made, project.layout
        self.scored_on = project.stand_in(entry.scored_on)
        store = TokenStore(self.layout.corpus(self.scored_on) / f"encoded/{entry.split}.tgt")
        self.references = Alphabet().decode([*store])

    def transcripts(self, system: str) -> tuple[str, list[str] | None]:
        """Return folder and transcripts of a system's first seed; None if it was not run."""
        product = self.made[system]
        path = self.layout.path(product)
        if not path.exists():
            return product.run.folder, None
        return product.run.folder, read_lines(path, len(self.references))

    def choose_utterances(self, count: int) -> list[int] | None:
        """Return the utterances, from 0, with most word errors of one system; None if it was not run.

        Raises:
            UserError: Too few utterances are long enough.
        """
        _, lines = self.transcripts(self.entry.chosen_by)
        if lines is None:
            return None
        errors, words = WER.statistics(Transcripts(self.references, lines)).T
        long_enough = np.flatnonzero(words >= self.entry.least_words)
        if len(long_enough) < count:
            raise UserError(f"{self.scored_on}: {len(long_enough)} utterances have {self.entry.least_words} words")
        return sorted(long_enough[np.argsort(-errors[long_enough], kind="stable")[:count]].tolist())

    def transcript(self, system: str, number: int) -> dict[str, Any]:
        """Return a system's transcript of an utterance."""
        if not system:
            return {"ours": self.references[number], "word_errors": "", "run": ""}
        run, lines = self.transcripts(system)
        if lines is None:
            return {"ours": "", "word_errors": "", "run": run}
        errors = WER.statistics(Transcripts([self.references[number]], [lines[number]]))[0, 0]
        return {"ours": lines[number], "word_errors": int(errors), "run": run}


def render(project: Project, paper: str, table: str, rows: list[dict[str, Any]]) -> str:
    """Return one example after the other in Markdown, the printed text above ours."""
    entry, record = project.transcript_table(paper, table), project.papers[paper]
    parts = [f"# {literal(record.title)}: {table}, scale {project.config.scale}", prose(entry.caption)]
    for example, group in DataFrame(rows, dtype=object).groupby("example", sort=False):
        lines = [f"## Example {literal(str(example))}", ""]
        for row in group.to_dict("records"):
            errors = f" ({row['word_errors']} word errors)" if row["word_errors"] != "" else ""
            lines += [
                f"- {literal(row['model'])}",
                f"  - printed: {literal(row['printed'])}",
                f"  - ours: {literal(row['ours']) or (NOTHING if errors else 'not run')}{errors}",
            ]
        parts.append("\n".join(lines))
    used = project.stand_in(entry.scored_on)
    return paragraphs(*parts, f"Ours are utterances of `{used}` ({entry.split}).")
