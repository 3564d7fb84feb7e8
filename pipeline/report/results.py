"""Tables, figures and claims from the outputs made so far; a row without a number says why.

The modification time of such reports is set before that of their inputs, and Snakemake's record of them is removed.
So the workflow rebuilds them.
"""

import logging
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pipeline.analysis.claims.verdicts import Verdict
from pipeline.analysis.figures.figure import save
from pipeline.analysis.run_folders import NotRun
from pipeline.analysis.view import PaperView
from pipeline.core import artifacts
from pipeline.core.command_line import Argument, Pause
from pipeline.core.digests import recording_digests
from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write
from pipeline.outputs.manifest import part_of
from pipeline.outputs.score import score_available
from pipeline.papers.config_file import parse_settings, require_work
from pipeline.papers.project import Settings, load_project, require_project
from pipeline.report import claims, figure, filled_table, layer_table, text_tables
from pipeline.report.markup import write_report
from pipeline.report.table import render
from pipeline.workflow.campaign import WRITTEN_IN_PART, Campaign, Watch
from pipeline.workflow.causes import NOT_RUN, Causes
from pipeline.workflow.failures import first_line
from pipeline.workflow.graph import Graph, flatten
from pipeline.workflow.plans import Plans
from pipeline.workflow.targets import reports_asked_for

RECORDS = Path(".snakemake/metadata")
"""Snakemake's records of the files that it made."""
Known = dict[artifacts.Report, list[float | None]]
"""Complete reports that an earlier round of --watch compared, and the times of their inputs, None if missing."""


def write_results(
    targets: Annotated[tuple[str, ...], Argument(metavar="TARGET")] = ("all",),
    *,
    watch: bool = False,
    every: Pause = 300.0,
    settings: Settings = (),
) -> None:
    """Write tables, figures and claims from the outputs made so far.

        reprise results
        reprise results weighted results/paper/attention/table2.csv --set scale=paper
        reprise results --watch

    A row without its numbers says why: failed, running, waiting, not run, or a changed setting of its decoding.

    reads   the folders of runs and corpora, and Slurm's queue if something was submitted
    writes  results/<scale>/<paper>/… except unchanged complete ones; the next `snakemake` rebuilds the others

    Args:
        targets: Papers, `all`, or files in results/.
        watch: Repeat until Ctrl-C.
        every: Seconds between two rounds of --watch.
        settings: Override a key of config.yaml. May be given several times.
    """
    logging.disable(logging.INFO)  # silences the stages
    require_project(Path(), "go to the root folder of one")
    project = load_project(Path(), parse_settings(settings))
    require_work(project.config, project.root)
    graph = Graph(project)
    reports = list(dict.fromkeys(report for target in targets for report in reports_asked_for(graph, target)))
    watcher, known = Watch(project, reports), Known()
    while True:
        campaign = watcher.snapshot()
        score_decoded(graph, reports)
        with recording_digests():
            partial = PartialReports(graph, Causes(graph, campaign), known)
            made = [partial.make(report) for report in reports]
        mark_incomplete(partial.incomplete)
        for line in summary(campaign, made):
            print(line, flush=True)
        if not watch:
            return
        time.sleep(every)


@dataclass(frozen=True)
class WrittenReport:
    """A report that was to be written.

    Attributes:
        path: Its file.
        lacks: The missing parts in words; empty if it is complete.
        is_written: The file exists.
    """

    path: Path
    lacks: str
    is_written: bool = True


def summary(campaign: Campaign, made: list[WrittenReport]) -> Iterator[str]:
    """Yield lines about incomplete reports, failures, and progress."""
    for report in made:
        if report.lacks:
            yield f"{report.path}: {f'without {report.lacks}' if report.is_written else f'not made: {report.lacks}'}"
    for state in campaign.of_state("failed"):
        yield f"failed: train {state.run.folder}: {first_line(state.why)}"
    for failed in campaign.failed:
        yield f"failed: {failed.stage} in {failed.folder}: {first_line(failed.cause)}"
    states = ", ".join(f"{count} {state}" for state, count in campaign.counts.items() if count)
    reports = Counter(
        "not made" if not report.is_written else "incomplete" if report.lacks else "complete" for report in made
    )
    yield f"reports: {', '.join(f'{count} {how}' for how, count in reports.items())}; trainings: {states or 'none'}"


def score_decoded(graph: Graph, reports: Iterable[artifacts.Report]) -> None:
    """Score outputs of decodings that failed in part, for which the rule `score` did not start."""
    plans, layout = Plans(graph), graph.project.layout
    for scores in dict.fromkeys(map(artifacts.manifest_of, graph.closure(reports))):
        if not isinstance(scores, artifacts.Scores) or layout.path(scores).exists():
            continue
        if part_of(layout.path(artifacts.Outputs(scores.run, scores.decoding))).exists():
            score_available(layout.run(scores.run), plans.scoring(scores))


def mark_incomplete(paths: Iterable[Path]) -> None:
    """Make the next snakemake rebuild these files, even if their inputs did not change."""
    marked = [str(path) for path in paths if path.exists()]
    for path in marked:
        os.utime(path, (WRITTEN_IN_PART, WRITTEN_IN_PART))
    if marked and RECORDS.is_dir():  # fails for files without a record, which need no cleaning
        command = [sys.executable, "-m", "snakemake", "--nolock", "--cleanup-metadata", *marked]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


class PartialReports:
    """Writer of reports from the files that exist.

    Args:
        graph: The graph of the project.
        causes: Reasons for missing artifacts.
        known: Reports that need not be compared again as long as their inputs stay; this round adds its own.

    Attributes:
        folder: Where the report at work is written first.
        incomplete: Files that were written, to be marked with `mark_incomplete`.
    """

    def __init__(self, graph: Graph, causes: Causes, known: Known):
        self.graph, self.causes, self.project, self.known = graph, causes, graph.project, known
        self.folder = Path()
        self.incomplete: list[Path] = []

    def make(self, report: artifacts.Report) -> WrittenReport:
        """Write a report unless it is complete and has this content already.

        Times are not enough: it may be newer than its inputs, and show the runs of other settings or seeds.

        Returns:
            The report, with what it lacks.
        """
        layout, inputs = self.project.layout, flatten(self.graph.inputs(report))
        path, files = layout.path(report), [layout.path(artifact) for artifact in inputs]
        times = [file.stat().st_mtime if file.exists() else None for file in files]
        if path.exists() and self.known.get(report) == times:
            return WrittenReport(path, "")
        with tempfile.TemporaryDirectory() as folder:
            self.folder = Path(folder)
            try:
                lacks = self.write(report, self.causes.missing(inputs))
            except (UserError, NotRun) as error:
                return WrittenReport(path, str(error), is_written=False)
            contents = {path.with_name(file.name): file.read_bytes() for file in self.folder.glob(f"{path.stem}.*")}
        if lacks or any(not file.exists() or file.read_bytes() != content for file, content in contents.items()):
            for file, content in contents.items():
                with atomic_write(file, "wb") as handle:
                    handle.write(content)
            self.incomplete += contents
        if not lacks:
            self.known[report] = times
        return WrittenReport(path, lacks)

    def write(self, report: artifacts.Report, missing: list[artifacts.Artifact]) -> str:
        """Return the missing parts of a report in words, after writing it; empty if it is complete.

        Raises:
            UserError: An input is faulty.
            NotRun: No part of it can be made.
        """
        match report:
            case artifacts.ExampleTable() | artifacts.TranscriptTable() | artifacts.LayerTable():
                return self.other_table(report, missing)
            case artifacts.Table(paper, table):
                return self.table(report, paper, table)
            case artifacts.Figure(paper, name):
                return self.figure(report, paper, name)
            case artifacts.Claims(paper):
                return self.claims(report, paper)

    def table(self, report: artifacts.Report, paper: str, name: str) -> str:
        """Write a table and return the missing rows in words; a row without its numbers says why."""
        filled = filled_table.fill(self.project, paper, name)
        view, cells = filled.table.view, filled.entry.cells.values()
        whys = list[str]()
        for row, status in zip(filled.table.rows, filled.runs["status"], strict=True):
            unfinished = status in filled_table.UNFINISHED
            why = self.causes.why(need for cell in cells for need in cell.needs(view, row)) if unfinished else ""
            whys.append(status if why == NOT_RUN else why)
        statuses = [why or status for why, status in zip(whys, filled.runs["status"], strict=True)]
        filled = replace(filled, runs=filled.runs.assign(status=statuses))
        write_report(self.path(report), filled.frame, render(self.project, paper, name, filled))
        return count_missing(whys, "rows")

    def claims(self, report: artifacts.Report, paper: str) -> str:
        """Write claims and return the missing ones in words; one that cannot be evaluated says why."""
        view, record = PaperView(self.project, paper), self.project.claims[paper]
        results, whys = claims.results_in_words(self.project, paper, (NotRun, UserError)), list[str]()
        for index, result in enumerate(results):
            whys.append(
                self.causes.why(result.claim.needs(view, record.scores)) if result.verdict is Verdict.NOT_RUN else ""
            )
            results[index] = replace(result, why=whys[-1] or result.why)
        rows = [claims.row_of(result) for result in results]
        write_report(self.path(report), rows, claims.render(self.project, paper, results))
        return count_missing(whys, "claims")

    def figure(self, report: artifacts.Report, paper: str, name: str) -> str:
        """Return in words the systems that a figure, drawn here, leaves out; its caption names them.

        Raises:
            NotRun: All systems miss something.
        """
        view, entry = PaperView(self.project, paper), self.project.figure(paper, name)
        systems = getattr(entry, "systems", [])
        parts = {system: entry.model_copy(update={"systems": [system]}) for system in systems} or {"": entry}
        whys = {system: why for system, part in parts.items() if (why := self.causes.why(part.needs(view)))}
        if len(whys) == len(parts):
            raise NotRun("; ".join(dict.fromkeys(whys.values())))
        if whys:
            entry = entry.model_copy(update={"systems": [system for system in systems if system not in whys]})
        left_out = "; ".join(f"{system} ({why})" for system, why in whys.items())
        drawing, path = entry.draw(view), self.path(report)
        facts = f"{drawing.facts} Left out: {left_out}." if left_out else drawing.facts
        write_report(
            path.with_suffix(".csv"), drawing.rows, figure.caption(self.project, paper, name, facts), figure.TEXTS
        )
        save(drawing.picture, path)
        return left_out

    def other_table(self, report: artifacts.Table, missing: list[artifacts.Artifact]) -> str:
        """Return the missing transcripts in words, after writing a table of sentences, transcripts or layers.

        Raises:
            NotRun: An artifact is missing without which the table cannot be made.
        """
        why = self.causes.why(missing)
        needs_all = not isinstance(report, artifacts.TranscriptTable) or any(
            isinstance(artifact, artifacts.Encoded) for artifact in missing
        )
        if missing and needs_all:
            raise NotRun(why)
        paper, table, out = report.paper, report.table, self.path(report)
        if isinstance(report, artifacts.ExampleTable):
            text_tables.make_example_table(self.project, paper, table, out)
        elif isinstance(report, artifacts.TranscriptTable):
            text_tables.make_transcript_table(self.project, paper, table, out)
        else:
            layer_times = self.project.layout.path(artifacts.LayerTimes())
            layer_table.make_layer_table(self.project, paper, table, layer_times, out)
        return f"some transcripts ({why})" if why else ""

    def path(self, report: artifacts.Report) -> Path:
        """Return where a report is written first."""
        return self.folder / self.project.layout.path(report).name


def count_missing(causes: list[str], what: str) -> str:
    """Return the rows or claims without a number in words, by the kind of cause; empty if nothing is missing.

    Args:
        causes: Cause for each row or claim; empty if it has its number.
        what: What is counted, in the plural.
    """
    kinds = Counter(cause.partition(":")[0] for cause in causes if cause)
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    return f"{kinds.total()} of {len(causes)} {what} ({counts})" if kinds else ""
