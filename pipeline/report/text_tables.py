"""Tables that show texts beside those that the paper prints.

One compares translations of one sentence by every system, the other transcripts of a few utterances.
"""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pandas import DataFrame

from pipeline.analysis.run_folders import RunFolders
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import RunId, Score, Transcript, Translation
from pipeline.core.errors import UserError, count_of
from pipeline.data.dataset import CorpusRecord, SplitName, load_one_of
from pipeline.data.sequence_store import TokenStore
from pipeline.data.text.text_files import read_lines
from pipeline.data.text.vocabulary import Alphabet
from pipeline.metrics import metric_named, read_statistics
from pipeline.metrics.error_rates import WER, Transcripts
from pipeline.papers.paper import Examples, TranscriptTable
from pipeline.papers.project import Project, ProjectOptions
from pipeline.papers.reports import example_runs, transcripts
from pipeline.report.filled_table import NOT_RUN
from pipeline.report.labels import NOTHING
from pipeline.report.markup import grid, literal, paragraphs, prose, write_report

log = logging.getLogger(__name__)
EXAMPLE_TEXTS = ("item", "printed", "ours")
TRANSCRIPT_TEXTS = ("example", "model", "printed", "ours")
METRIC = "sacrebleu"
"""Smoothed, so that a single sentence has a score."""


@dataclass(frozen=True)
class ChosenSentence:
    """The chosen sentence.

    Attributes:
        line: Its line in the split, from 0.
        words: Number of its words.
        scores: BLEU of this sentence by row of the table.
    """

    split: SplitName
    line: int
    words: int
    scores: dict[str, float]


def write_example_table(*, paper: str, table: str, out: Path, project: ProjectOptions) -> None:
    r"""Compare the translations of one sentence by every system.

        python -m pipeline example-table --paper multichannel --table table3 --set scale=demo \
            --out results/demo/multichannel/table3.csv

    Write the CSV and, beside it, a Markdown file. The sentence is chosen by a rule that depends on no system's name
    (`Examples` in pipeline/papers/paper.py).

    Args:
        paper: Name of a paper in workflow/papers.
        table: Name of a table of the paper.
        out: CSV to write, with a Markdown file beside it.
        project: The project and its settings.
    """
    make_example_table(project.load([paper]), paper, table, out)


def make_example_table(project: Project, paper: str, table: str, out: Path) -> None:
    """Write a table of example translations; see `write_example_table`."""
    choice = choose_sentence(project, paper, project.examples(paper, table), example_runs(project, paper, table))
    rows = example_rows(project, paper, table, choice)
    write_report(out, rows, render_examples(project, paper, table, choice, rows), EXAMPLE_TEXTS)
    log.info("%s: line %d of %s", out, choice.line + 1, choice.split)


def choose_sentence(project: Project, paper: str, entry: Examples, runs: dict[str, RunId]) -> ChosenSentence:
    """Return the sentence whose scores have the largest standard deviation; ties go to the first.

    Raises:
        UserError: No sentence has a length in the range.
    """
    corpus, (fewest, most) = project.stand_in(entry.dataset), entry.words
    folders = RunFolders(PaperView(project, paper))
    largest, best = -1.0, None
    for split in entry.splits:
        lengths, scores = folders.source_lengths(corpus, [split]), sentence_scores(project, entry, runs, split)
        spread = np.std(list(scores.values()), axis=0)
        spread[(lengths < fewest) | (lengths > most)] = -1
        line = int(np.argmax(spread))
        if spread[line] > largest:
            largest, of_line = float(spread[line]), {item: float(found[line]) for item, found in scores.items()}
            best = ChosenSentence(split, line, int(lengths[line]), of_line)
    if best is None:
        raise UserError(f"no sentence of {fewest} to {most} words in {', '.join(entry.splits)}; widen `words`")
    return best


def sentence_scores(project: Project, entry: Examples, runs: dict[str, RunId], split: str) -> dict[str, np.ndarray]:
    """Return the BLEU of each sentence alone, shape (N,), by row of the table."""
    metric = metric_named(METRIC)
    paths = {item: project.layout.path(Score(run, "scores", entry.decoding, split)) for item, run in runs.items()}
    return {item: metric.total(read_statistics(path, METRIC)) for item, path in paths.items()}


def example_rows(project: Project, paper: str, table: str, choice: ChosenSentence) -> list[dict[str, str]]:
    """Return the printed texts beside ours."""
    entry, runs = project.examples(paper, table), example_runs(project, paper, table)
    name = project.stand_in(entry.dataset)
    dataset = load_one_of(project.datasets[name], CorpusRecord, "parallel text")
    folder = project.layout.corpus(name) / "prepared"
    texts = {"input": folder / f"{choice.split}.{dataset.src}", "reference": folder / f"{choice.split}.{dataset.tgt}"}
    rows = []
    for printed in project.printed[paper][table]:
        item, source = printed["item"], printed["source"]
        made = source == "ours-to-run"
        path = project.layout.text(Translation(runs[item], entry.decoding, choice.split)) if made else texts[source]
        score = f"{choice.scores[item]:.1f}" if item in choice.scores else ""
        ours = read_lines(path)[choice.line]
        place = {"test_set": dataset.name_of_split(choice.split), "line": str(choice.line + 1)}
        rows.append({"item": item, "printed": printed["text"], "ours": ours, "bleu": score, "source": source, **place})
    return rows


def render_examples(
    project: Project, paper: str, table: str, choice: ChosenSentence, rows: list[dict[str, str]]
) -> str:
    """Return the table in Markdown, for a terminal."""
    entry, seed = project.examples(paper, table), project.config.seed_list[0]
    chosen = (
        f"Ours: line {choice.line + 1} of {literal(rows[0]['test_set'])}, {count_of(choice.words, 'word')}, "
        f"the sentence of {entry.words[0]} to {entry.words[1]} words on which the systems' smoothed sentence BLEU "
        f"differs most: standard deviation {np.std(list(choice.scores.values())):.1f}. Seed {seed}."
    )
    return paragraphs(
        f"# {literal(project.papers[paper].title)}: {table}, scale {project.config.scale}",
        prose(entry.caption),
        grid(
            ["", "ours", "BLEU"], [[row["item"], shown_output(row["ours"], row["bleu"]), row["bleu"]] for row in rows]
        ),
        grid(["", "printed"], [[row["item"], row["printed"]] for row in rows]),
        chosen,
    )


def write_transcript_table(*, paper: str, table: str, out: Path, project: ProjectOptions) -> None:
    """Compare transcripts of a few utterances with those that the paper prints.

        python -m pipeline transcript-table --paper coldfusion --table table1 --out results/demo/coldfusion/table1.csv

    Write the CSV (example, model, printed, utterance, ours, word_errors, run) and a Markdown file. The utterances are
    those with enough words on which one system, named by the paper's file, makes the most word errors. Ties go to the
    first. Transcripts are those of the first seed.

    Args:
        paper: Name of a paper in workflow/papers.
        table: Name of a table of the paper.
        out: CSV to write, with a Markdown file beside it.
        project: The project and its settings.
    """
    make_transcript_table(project.load([paper]), paper, table, out)


def make_transcript_table(project: Project, paper: str, table: str, out: Path) -> None:
    """Write a table of transcripts; see `write_transcript_table`."""
    rows = transcript_rows(project, paper, table)
    write_report(out, rows, render_transcripts(project, paper, table, rows), TRANSCRIPT_TEXTS)
    log.info("%s: %d texts", out, len(rows))


def transcript_rows(project: Project, paper: str, table: str) -> list[dict[str, Any]]:
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
        artifact = self.made[system]
        path = self.layout.path(artifact)
        if not path.exists():
            return artifact.run.folder, None
        return artifact.run.folder, read_lines(path, len(self.references))

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
            found = count_of(len(long_enough), "utterance has", "utterances have")
            raise UserError(f"{self.scored_on}: {found} {self.entry.least_words} words")
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


def shown_output(text: str, score: object) -> str:
    """Return an output as tables show it, one without words by name.

    Args:
        text: The output.
        score: Its score; "" if it was not run.
    """
    return text.strip() or (NOT_RUN if score == "" else NOTHING)


def render_transcripts(project: Project, paper: str, table: str, rows: list[dict[str, Any]]) -> str:
    """Return one example after the other in Markdown, the printed text above ours."""
    entry, record = project.transcript_table(paper, table), project.papers[paper]
    parts = [f"# {literal(record.title)}: {table}, scale {project.config.scale}", prose(entry.caption)]
    for example, group in DataFrame(rows, dtype=object).groupby("example", sort=False):
        lines = [f"## Example {literal(str(example))}", ""]
        for row in group.to_dict("records"):
            errors = f" ({count_of(int(row['word_errors']), 'word error')})" if row["word_errors"] != "" else ""
            lines += [
                f"- {literal(row['model'])}",
                f"  - printed: {literal(row['printed'])}",
                f"  - ours: {shown_output(literal(row['ours']), row['word_errors'])}{errors}",
            ]
        parts.append("\n".join(lines))
    used = project.stand_in(entry.scored_on)
    return paragraphs(*parts, f"Ours are utterances of `{used}` ({entry.split}).")
