"""Translations of one sentence by every system, beside what the paper printed for one of its own."""

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.analysis.run_folders import RunFolders
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import RunId, Score, Translation
from pipeline.core.errors import UserError
from pipeline.data.dataset import CorpusRecord, SplitName, load_one_of
from pipeline.data.text.text_files import read_lines
from pipeline.metrics import metric_named, read_statistics
from pipeline.papers.paper import Examples
from pipeline.papers.project import Project, ProjectOptions
from pipeline.papers.reports import example_runs
from pipeline.report.labels import NOTHING
from pipeline.report.markup import grid, literal, paragraphs, prose, write_twins

log = logging.getLogger(__name__)

TEXTS = ("item", "printed", "ours")
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

    Write the CSV and, beside it, a Markdown twin. The sentence is chosen by a rule that depends on no system's name
    (`Examples` in pipeline/papers/paper.py).

    Args:
        paper: Name of a paper in workflow/papers.
        table: Name of a table of the paper.
        out: CSV to write, with a Markdown twin beside it.
        project: The project and its settings.
    """
    loaded = project.load([paper])
    entry, runs = loaded.examples(paper, table), example_runs(loaded, paper, table)
    choice = choose_sentence(loaded, paper, entry, runs)
    rows = table_rows(loaded, paper, table, choice)
    write_twins(out, rows, render(loaded, paper, table, choice, rows), TEXTS)
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


def table_rows(project: Project, paper: str, table: str, choice: ChosenSentence) -> list[dict[str, str]]:
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


def render(project: Project, paper: str, table: str, choice: ChosenSentence, rows: list[dict[str, str]]) -> str:
    """Return the table in Markdown, for a terminal."""
    entry, seed = project.examples(paper, table), project.config.seed_list[0]
    chosen = (
        f"Ours: line {choice.line + 1} of {literal(rows[0]['test_set'])}, {choice.words} words, the sentence of "
        f"{entry.words[0]} to {entry.words[1]} words on which the systems' smoothed sentence BLEU differs "
        f"most: standard deviation {np.std(list(choice.scores.values())):.1f}. Seed {seed}."
    )
    return paragraphs(
        f"# {literal(project.papers[paper].title)}: {table}, scale {project.config.scale}",
        prose(entry.caption),
        grid(["", "ours", "BLEU"], [[row["item"], row["ours"] or NOTHING, row["bleu"]] for row in rows]),
        grid(["", "printed"], [[row["item"], row["printed"]] for row in rows]),
        chosen,
    )
