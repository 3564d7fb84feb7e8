"""Names of metrics, columns and systems as a reader knows them."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pipeline.analysis.cells.cell import Cell, Row, is_ours
from pipeline.analysis.cells.facts import SizeCell
from pipeline.analysis.cells.scores import ScoreCell
from pipeline.analysis.claims.verdicts import ClaimResult
from pipeline.analysis.view import PaperView, ScoredSplits, Term
from pipeline.core.artifacts import Artifact, RunArtifact, RunId
from pipeline.papers.paper import TableEntry
from pipeline.papers.project import Project

METRICS = {
    "bleu": "BLEU",
    "bleu_paper": "BLEU",
    "bleu_closest": "BLEU (closest reference)",
    "bleu_tok": "BLEU (tokenised)",
    "bleu_tok_lc": "BLEU (tokenised, lower case)",
    "sacrebleu": "sacreBLEU",
    "gleu": "GLEU",
    "chrf": "chrF",
    "cer": "CER",
    "wer": "WER",
    "f1": "F1",
    "f1_40": "F1 up to 40 words",
    "f1_aligned": "F1 of aligned trees",
}
"""Metrics whose name is not what a reader calls them."""
COLUMNS = {
    "parameters_here": "parameters",
    "operations": "FLOPs a step",
    "ppl": "perplexity",
    "flops": "FLOPs",
    "ende": "en–de",
    "enfr": "en–fr",
}
"""Columns whose key is not what a reader calls them."""
NOTHING = "(nothing)"
"""Shown in place of an output without words."""
LONGEST = 60
"""Characters of two descriptions, beyond which the shorter names of a table are preferred."""
SYMBOLS = {
    "N": "model.num_layers",
    "d_model": "model.d_model",
    "d_ff": "model.d_ff",
    "h": "model.num_heads",
    "M": "model.num_branches",
    "d_k": "model.d_k",
    "d_v": "model.d_v",
    "p_drop": "model.dropout",
    "eps_ls": "training.label_smoothing",
    "train_steps": "training.max_steps",
}
"""Settings by the symbols of printed tables."""


def metric_title(name: str) -> str:
    """Return what a reader calls a metric."""
    return METRICS.get(name, name.replace("_", " "))


def pair_of(project: Project, dataset: str) -> str:
    """Return the languages of a dataset as `en–de`; its name if it has no pair of languages."""
    record = project.dataset_records[project.stand_in(dataset)]
    src, tgt = getattr(record, "src", ""), getattr(record, "tgt", "")
    return f"{src}–{tgt}" if src and tgt else dataset.replace("-", " ")


def column_titles(project: Project, cells: Mapping[str, Cell]) -> dict[str, str]:
    """Return a title for each measured column of a table, as short as possible."""
    datasets = {cell.scored_on or cell.dataset for cell in cells.values() if isinstance(cell, ScoreCell)}
    titles = {}
    for key, cell in cells.items():
        titles[key] = COLUMNS.get(key) or words_of(key)
        if isinstance(cell, SizeCell):
            titles[key] = f"{titles[key]} at paper size"
        if isinstance(cell, ScoreCell):
            of = f" {pair_of(project, cell.scored_on or cell.dataset)}" if len(datasets) > 1 else ""
            titles[key] = metric_title(cell.metric) + of
    twice = Counter(titles.values())
    return {
        key: f"{title} {mark_of(key, cells, titles)}" if twice[title] > 1 else title for key, title in titles.items()
    }


def mark_of(key: str, cells: Mapping[str, Cell], titles: Mapping[str, str]) -> str:
    """Return the word that distinguishes a column from others of its title: its decoding if possible, else its key."""
    twins = [other for other, title in titles.items() if title == titles[key]]
    decodings = {other: cell.decoding for other in twins if isinstance(cell := cells[other], ScoreCell)}
    differ = len({*decodings.values()} - {None}) == len(twins)
    return (differ and decodings[key]) or words_of(key)


def words_of(key: str) -> str:
    """Return the key of a column in words."""
    return " ".join(COLUMNS.get(word, word) for word in key.split("_"))


def with_minus(text: str) -> str:
    """Return a text whose negative numbers have a minus sign instead of a hyphen."""
    return re.sub(r"(?<![\w.–-])-(?=\d)", "−", text)


def with_names(text: str, names: Mapping[str, str]) -> str:
    """Return a `text` with readers' names in place of those of settings files, given `names` by the latter."""
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<![\w/=-])({re.escape(name)})(?![\w/-])", "\0\\1\0", text)
    return re.sub("\0([^\0]*)\0", lambda found: names[found[1]], text)


@dataclass(frozen=True)
class Labels:
    """Names of systems in the words of one paper: its own descriptions, and rows of its tables for those of others.

    Attributes:
        view: The project in the names of the paper.
    """

    view: PaperView

    @cached_property
    def project(self) -> Project:
        """Return the project."""
        assert isinstance(self.view.experiment, Project)
        return self.view.experiment

    @cached_property
    def tables(self) -> dict[str, tuple[TableEntry, Sequence[Row]]]:
        """Return the entry and the printed rows of each table of the paper."""
        project, paper = self.project, self.view.paper
        return {name: (project.table(paper, name), project.printed[paper][name]) for name in project.tables_here(paper)}

    @cached_property
    def rows(self) -> dict[str, str]:
        """Return the name of the first row of each system."""
        return {
            system: name
            for table in reversed(self.tables.values())
            for system, name in names_of_systems(*table).items()
        }

    def system(self, reference: str) -> str:
        """Return the name of a system."""
        if "/" in reference and reference in self.rows:
            return self.rows[reference]
        return self.view.experiment.system_entry(self.view.paper, reference).description

    def pair(self, terms: Sequence[Term]) -> list[str]:
        """Return names of systems that are compared: by one table, if one is of another paper or they are long."""
        found = [self.term(term) for term in terms]
        if any("/" in term.system for term in terms) or sum(map(len, found)) > LONGEST:
            for table in self.tables.values():
                names = names_of_systems(*table)
                if all(term.system in names and not term.decodings for term in terms):
                    return [names[term.system] for term in terms]
        return found

    def term(self, term: Term) -> str:
        """Return the name of a side of a comparison."""
        decodings = f" ({', '.join(term.decodings)})" if term.decodings else ""
        return self.system(term.system) + decodings

    def test_sets(self, scored: ScoredSplits) -> str:
        """Return the names of the test sets that are scored here; of many, the first and the last."""
        record = self.project.dataset_records[self.project.stand_in(scored.scored_on or scored.dataset)]
        names = [record.name_of_split(split) for split in scored.splits]
        return f"{names[0]} to {names[-1]}" if len(names) > 2 else ", ".join(names)

    def in_words(self, text: str, systems: Collection[str]) -> str:
        """Put readers' names into a `text` that refers to systems and metrics as settings files do."""
        return with_names(text, {system: self.system(system) for system in systems} | METRICS)

    def result(self, one: ClaimResult) -> ClaimResult:
        """Return a claim's result with readers' names in its texts."""
        systems = {term.system for term in one.claim.compared} | {system for system, _ in one.claim.trainings}
        why = self.in_words(one.why, systems)
        if one.found is None:
            return replace(one, why=why)
        evidence = [
            replace(part, name=self.in_words(part.name, systems), noise=self.in_words(part.noise, systems))
            for part in one.found.evidence
        ]
        ours = self.in_words(one.found.ours, systems)
        tested = self.in_words(one.found.test, systems)
        return replace(one, why=why, found=replace(one.found, ours=ours, test=tested, evidence=evidence))


def names_of_rows(entry: TableEntry, rows: Sequence[Row]) -> list[str]:
    """Return the names of rows: their labels and, if those are equal, the settings that differ."""
    labels = [" ".join(filter(None, (row[key] for key in entry.label))) for row in rows]
    found = []
    for row, label in zip(rows, labels, strict=True):
        twins = [other for other, same in zip(rows, labels, strict=True) if same == label]
        differing = [key for key in entry.settings if len({twin[key] for twin in twins}) > 1]
        found.append(" ".join([label, *(f"{key} = {row[key]}" for key in differing)]))
    return found


def names_of_systems(entry: TableEntry, rows: Sequence[Row]) -> dict[str, str]:
    """Return the name of the first row of each system of a table."""
    found: dict[str, str] = {}
    for row, name in zip(rows, names_of_rows(entry, rows), strict=True):
        for cell in entry.cells.values():
            for system in cell.systems(row) if is_ours(row) else ():
                found.setdefault(system, name)
    return found


def short_title(title: str) -> str:
    """Return the beginning of a paper's title, up to a colon, a comma or `for`."""
    return re.split(": |, | for ", title)[0]


def seeds_in_words(artifacts: Iterable[Artifact]) -> str:
    """Return the seeds of the runs behind some artifacts, as `1, 2, 3`, or `1, 2, 3 (of some systems 1)`."""
    found: dict[str, dict[int, None]] = {}
    for artifact in artifacts:
        if isinstance(artifact, RunArtifact):
            found.setdefault(artifact.run.folder.rpartition("/")[0], {})[artifact.run.seed] = None
    lists = sorted(dict.fromkeys(map(tuple, found.values())), key=len, reverse=True)
    most, *fewer = (", ".join(map(str, seeds)) for seeds in lists or [()])
    return f"{most} (of some systems {' or '.join(fewer)})" if fewer else most


def run_title(project: Project, run: RunId) -> str:
    """Return paper and description of a run's system, and its name if another is described alike."""
    systems = project.papers[run.paper].systems
    description = systems[run.system].description
    twins = sum(entry.description == description for entry in systems.values())
    return f"{run.paper}: {description}" + (f" [{run.system}]" if twins > 1 else "")


def output_name(project: Project, run: RunId, decoding: str) -> str:
    """Return the name of the outputs of a run."""
    return f"{run_title(project, run)} ({decoding})"


def report_title(name: str) -> str:
    """Return the title of a table or figure, such as `Table 2` for `table2`."""
    return re.sub(r"(?<=[a-z])(?=\d)", " ", name).replace("-", " ").replace("_", " ").capitalize()
