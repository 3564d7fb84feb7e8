"""The command `verify`: check every file against its recorded digest."""

import logging
import os
import shlex
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from os.path import exists
from pathlib import Path
from typing import Annotated

from pipeline.core.artifacts import Artifact, DatasetArtifact, RunArtifact, Trained
from pipeline.core.command_line import Argument
from pipeline.core.digests import write_note
from pipeline.core.disk import format_bytes
from pipeline.core.errors import UserError, count_of
from pipeline.core.files import NOTES, note_path, remove_orphans, set_aside
from pipeline.core.layout import COST_FILE, DONE_FILE, OUTPUTS_FILE, SCORES_FILE
from pipeline.core.records.jobs import remove_damaged_lines
from pipeline.outputs.manifest import reopen
from pipeline.papers.project import Project, ProjectOptions
from pipeline.workflow.drivers import liveness_reason, read_drivers
from pipeline.workflow.file_checks import LINES, FileCheck
from pipeline.workflow.graph import Graph, flatten
from pipeline.workflow.live_work import LiveWork
from pipeline.workflow.targets import artifacts_in_file, config_options, reports_of_paper
from reprise.artifact_checks import Finding, Inspection, is_needed
from reprise.find_runs import unchecked_scales
from reprise.training_files import can_restore_record, restore_record

log = logging.getLogger(__name__)

REBUILT = "snakemake rebuilds it"


def verify(
    targets: Annotated[tuple[str, ...], Argument(metavar="TARGET")] = (),
    *,
    project: ProjectOptions,
    repair: bool = False,
) -> None:
    """Verify the digest of every file, and report or set aside damaged ones.

        reprise verify --set scale=paper             all files, of every paper
        reprise verify results/table2.csv            the files that this table is made from
        reprise verify --repair weighted             the files of this paper; set aside damaged ones

    With --repair, a damaged file is renamed to NAME.damaged, and so is the target file of an output that is damaged or
    incomplete. The manifest of a decoding becomes NAME.part, and a file of lines keeps its intact ones. Snakemake
    then rebuilds only what is missing. The last line names the command that also rebuilds the weights of a model that
    is already scored. An unreadable file is left alone. The exit status is 1 if something is wrong; after a repair,
    only if something is still wrong.

    Args:
        targets: Papers, `all`, or files in results/; by default every existing file.
        project: The project and its settings.
        repair: Set aside damaged files and the target files of incomplete outputs.

    Raises:
        UserError: A file is not good, or a Snakemake that runs or a job on Slurm forbids the repair.
    """
    loaded = project.load()
    drivers = map(liveness_reason, read_drivers(project.root).values())
    if repair and (reasons := [*filter(None, drivers), *jobs_in_queue(LiveWork(loaded.layout.work))]):
        raise UserError(f"not repaired: {reasons[0]}")
    verify_project(loaded, [*targets], repair)


def jobs_in_queue(work: LiveWork) -> Iterator[str]:
    """Yield the jobs on Slurm that forbid a repair; without squeue none, and runs that may have one are left alone."""
    if shutil.which("squeue"):
        for run in work.runs:
            yield from (f"{run}: {job}; repair once no job needs the run" for job in work.jobs(run))


def verify_project(project: Project, targets: list[str], repair: bool) -> None:
    """Verify, or repair, the files that targets are made from.

    Args:
        project: The project at its scale.
        targets: Papers, `all`, or files; empty means every existing file.
        repair: Set aside damaged files and the target files of incomplete outputs.

    Raises:
        UserError: A file is not good, after a repair only if it is unreadable.
    """
    graph = Graph(project)
    files, reports = resolve(graph, targets) if targets else ([], graph.readable(project.papers))
    inspection = Inspection(graph, files, reports)
    findings = inspection.found.values()
    wrong = {check.path: check for finding in findings for check in finding.checks if check.state != "good"}
    repairs = Repairs()
    if repair:
        remove_unfinished_files(project)
        for finding in findings:
            repairs.repair(project, finding)
    show([*good_rows(project, findings), *(row(check, repairs) for check in wrong.values())])
    for run, who in inspection.work.reasons.items():
        if who:
            log.warning("%s: the training was not checked: %s", run, who)
    for line in () if targets else [*unchecked_runs(project, findings), *unchecked_scales(project, "verify")]:
        log.info(line)
    left = [check for check in wrong.values() if check.state == "unreadable"] if repair else wrong
    if left:
        remedy = "check the disk" if repair else "run this with --repair, then the command that it prints"
        of_scale = f"of scale {project.config.scale}"
        raise UserError(f"{count_of(len(left), f'file {of_scale} is', f'files {of_scale} are')} not good: {remedy}")
    if again := " ".join(shlex.quote(str(path)) for path in final_missing_files(graph, findings)):
        now = f"run `snakemake{config_options(project)} -- {again}` to rebuild what is missing"
    else:
        now = "nothing needs the files that were set aside" if repairs.asides else "every file is good"
    log.info("scale %s: %s", project.config.scale, now)


def resolve(graph: Graph, names: list[str]) -> tuple[list[Artifact], list[Artifact]]:
    """Resolve targets.

    Args:
        graph: The graph of all artifacts.
        names: Papers, `all`, or files.

    Returns:
        The artifacts of named files, which must exist, and the reports of papers.

    Raises:
        UserError: A name is neither a paper nor a file that is made at this scale.
    """
    every = graph.closure(graph.readable(graph.project.papers))
    otherwise = f"no artifact of the papers has this file at scale {graph.project.config.scale}"
    files, of_papers = list[Artifact](), list[Artifact]()
    for name in names:
        if reports := reports_of_paper(graph, name):
            of_papers += reports
        else:
            files += artifacts_in_file(graph.project, name, every, otherwise)
    return files, of_papers


def final_missing_files(graph: Graph, findings: Iterable[Finding]) -> list[Path]:
    """Return the missing files that no other missing file depends on: rebuilding them rebuilds all."""
    target = graph.project.layout.target
    bad = (
        finding.artifact
        for finding in findings
        if finding.stale or any(check.state != "good" for check in finding.checks)
    )
    lost = {artifact: target(artifact) for artifact in bad if not target(artifact).exists()}
    inputs = ((own, target(source)) for artifact, own in lost.items() for source in flatten(graph.inputs(artifact)))
    made_of = {needed for own, needed in inputs if needed != own}
    return list(dict.fromkeys(path for path in lost.values() if path not in made_of))


def unchecked_runs(project: Project, findings: Iterable[Finding]) -> Iterator[str]:
    """Yield a line on the runs of the scale that no report reads, if there are any."""
    read = {
        project.layout.run(finding.artifact.run) for finding in findings if isinstance(finding.artifact, RunArtifact)
    }
    if beside := sorted(set(project.layout.runs.glob("*/*/*/seed*")) - read):
        yield f"runs that no report reads were not checked: {len(beside)}, such as {beside[0]}"


class Repairs:
    """Repairs that were made.

    Attributes:
        asides: New names of files that were set aside.
        restored: Files that were restored from other files.
    """

    def __init__(self) -> None:
        self.asides: dict[Path, Path] = {}
        self.restored: set[Path] = set()

    def repair(self, project: Project, finding: Finding) -> None:
        """Rename damaged files and stale target files of a finding. Unreadable files are left alone."""
        unreadable = {check.path for check in finding.checks if check.state == "unreadable"}
        stale = set() if self.restore(project, finding) else finding.stale - unreadable
        for check in finding.checks:
            if check.path in self.restored or check.path in self.asides:
                continue
            if check.state == "damaged" and check.path.parent.name == NOTES:
                write_note(check.path.parent.parent / check.path.name)
                self.restored.add(check.path)
            elif check.state == "damaged" and check.path.name in LINES:
                self.asides[check.path] = remove_damaged_lines(check.path, LINES[check.path.name])
            elif check.state == "damaged" and exists(check.path):
                self.asides[check.path] = set_aside(check.path)
            if check.state == "missing":  # reported again as soon as something needs it
                note_path(check.path).unlink(missing_ok=True)
        for path in sorted(filter(exists, stale)):
            self.asides[path] = reopen(path) if path.name in (OUTPUTS_FILE, SCORES_FILE) else set_aside(path)

    def restore(self, project: Project, finding: Finding) -> bool:
        """Restore the record of a training if no other needed file is lost and its corpus is intact.

        A restored record would keep Snakemake from rebuilding the corpus.

        Args:
            project: The project at its scale.
            finding: Checks of one artifact.

        Returns:
            Whether it was restored.
        """
        if not isinstance(finding.artifact, Trained) or finding.lacks_input:
            return False
        bad = {check.path for check in finding.checks if check.state != "good" and is_needed(check.path)}
        folder = project.layout.run(finding.artifact.run)
        if not can_restore_record(folder, bad):
            return False
        if aside := restore_record(folder):
            self.asides[folder / DONE_FILE] = aside
        self.restored.add(folder / DONE_FILE)
        return True


def remove_unfinished_files(project: Project) -> None:
    """Remove unfinished files of killed processes."""
    for top in (project.layout.work, project.layout.results):
        for folder, _, _ in os.walk(top):
            remove_orphans(Path(folder))


def good_rows(project: Project, findings: Iterable[Finding]) -> list[tuple[str, str, str, str]]:
    """Return one row per folder of intact files: folder, state, size and remedy."""
    places: dict[Path, dict[Path, int]] = defaultdict(dict)
    for finding in findings:
        for check in finding.checks:
            if check.state == "good":
                places[folder_of(project, finding.artifact, check.path)][check.path] = check.bytes
    return [
        (str(place), "good", format_bytes(sum(files.values())), f"{count_of(len(files), 'file')}, nothing to do")
        for place, files in sorted(places.items())
    ]


def folder_of(project: Project, artifact: Artifact, path: Path) -> Path:
    """Return the corpus, run or other folder of a file."""
    match artifact:
        case DatasetArtifact(dataset):
            corpus = project.layout.corpus(dataset)
            return corpus if corpus in path.parents else path.parent
        case RunArtifact(run):
            return project.layout.run(run)
    return path.parent


def row(check: FileCheck, repairs: Repairs) -> tuple[str, str, str, str]:
    """Return the row of a file that is not good: path, state, size, and fault with remedy."""
    aside = repairs.asides.get(check.path)
    match check.state:
        case "unreadable":
            what = "left alone: check the disk and the permissions"
        case _ if check.path in repairs.restored:
            what = "restored from other files"
        case _ if check.path.name in LINES and check.state == "damaged":
            what = "contains the old lines; the whole ones were kept" if aside else "--repair keeps the whole lines"
        case _ if check.path.name == COST_FILE:
            what = "tables lack its hours; only a new training would write it"
        case _ if not is_needed(check.path):
            what = "no result needs it; only a new training would write it"
        case _:
            what = REBUILT if aside or check.state == "missing" else f"set it aside with --repair, then {REBUILT}"
    now = f"now {aside.name}; " if aside else ""
    return str(check.path), check.state, format_bytes(check.bytes), f"{check.fault}: {now}{what}"


def show(rows: list[tuple[str, str, str, str]]) -> None:
    """Print a table, in plain text unless on a terminal."""
    header = ("what", "state", "size", "what to do")
    if sys.stdout.isatty():
        from rich.console import Console  # takes 0.1 s to import
        from rich.markup import escape
        from rich.table import Table

        table = Table(*header)
        for line in rows:
            table.add_row(*map(escape, line))
        Console().print(table)
        return
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for line in (header, *rows):
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip())
