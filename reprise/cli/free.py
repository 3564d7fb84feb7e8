"""Files that finished work no longer needs on disk."""

import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args

from pipeline.analysis.run_folders import changed_decoding
from pipeline.core.artifacts import Artifact, Averaged, Encoded, Raw, RunArtifact, RunId, Score, Spoken
from pipeline.core.command_line import Argument
from pipeline.core.digests import sha256_file
from pipeline.core.disk import format_bytes
from pipeline.core.errors import UserError, count_of
from pipeline.core.layout import DONE_FILE, WEIGHTS_FILE
from pipeline.core.records.training import TrainedRun
from pipeline.data.dataset import sources_of
from pipeline.data.fetch.download import remote_urls
from pipeline.papers.content import DIGITS
from pipeline.papers.project import Project, ProjectOptions
from pipeline.planning.data_files import is_extracted
from pipeline.workflow.graph import Graph, datasets_in
from pipeline.workflow.live_work import LiveWork
from pipeline.workflow.targets import reprise_command
from reprise.find_runs import unchecked_scales
from reprise.training_files import is_read_by_training_alone

log = logging.getLogger(__name__)

Kind = Literal["checkpoints", "old-runs", "unfinished", "old-corpora", "text", "audio", "downloads"]
KINDS: tuple[Kind, ...] = get_args(Kind)
WHOLE = ("old-runs", "unfinished", "old-corpora")
"""Kinds that are removed with their folders."""


@dataclass(frozen=True)
class Unneeded:
    """Files of one kind in one place.

    Attributes:
        kind: One of `KINDS`.
        place: Folder of the run, corpus or downloads.
        files: The files, with their marker files.
    """

    kind: str
    place: Path
    files: tuple[Path, ...]

    @property
    def bytes(self) -> int:
        """Return the total size."""
        return sum(path.stat().st_size for path in self.files)


def free(*, remove: Annotated[tuple[Kind, ...], Argument(metavar="KIND")] = (), project: ProjectOptions) -> None:
    """List or remove files that finished work no longer needs.

        reprise free --set scale=paper                             what can be removed, and its size
        reprise free --set scale=paper --remove checkpoints text   remove it

    Kinds:
        checkpoints   weights kept for averaging and optimiser states, of runs whose current scores are all written.
                      The final and the averaged weights stay; averaging other checkpoints would need a new training
        text          raw and prepared training text of encoded corpora; development and test text stay
        audio         audio of encoded speech corpora; to hear it, fetch or synthesise it again
        old-runs      finished trainings with settings or data other than the current ones; no report reads them
        unfinished    the same for trainings that did not end; removing them loses their steps
        old-corpora   corpora of datasets that have changed since
        downloads     fetched files whose datasets are all extracted; another extraction would fetch them again.
                      Files that have no address stay

    Never touches an unfinished run with current settings, a run in use, or what it reads. A run is in use if a process
    of this machine, or a running or pending Slurm job, works on it. Before checkpoints are removed, the final weights
    must match their digest.

    Args:
        remove: Kinds of files to remove.
        project: The project and its settings.
    """
    loaded = project.load()
    graph = Graph(loaded)
    found, readers = list(unneeded(graph)), reports_by_folder(graph)
    for item in found:
        verb = "removing " if item.kind in remove else ""
        read_by = ", ".join(readers.get(item.place, ["no report of the current settings"]))
        size = f"{count_of(len(item.files), 'file')}, {format_bytes(item.bytes)}"
        print(f"{verb}{item.kind}: {size} in {item.place}, read by {read_by}")
    freed = {kind: sum(item.bytes for item in found if item.kind == kind) for kind in KINDS}
    for item in found:
        if item.kind in remove:
            for path in item.files:
                path.unlink(missing_ok=True)  # two kinds share a marker file
            if item.kind in WHOLE:
                remove_empty(item.place)
    for kind, count in freed.items():
        if count:
            print(f"{kind}: {format_bytes(count)} {'removed' if kind in remove else 'can be removed'}")
    if not remove:
        kinds = [kind for kind, count in freed.items() if count and kind != "unfinished"]
        command = f"{reprise_command(loaded, 'free')} --remove {' '.join(kinds)}"
        print("nothing was removed" + (f"; to remove it: `{command}`" if kinds else ""))
    for line in unchecked_scales(loaded, "free"):
        print(line)


def remove_empty(folder: Path) -> None:
    """Remove a folder and its subfolders, except those that hold a file."""
    for path in [*sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True), folder]:
        with suppress(OSError):  # it holds a file
            path.rmdir()


def unneeded(graph: Graph) -> Iterator[Unneeded]:
    """Yield the files that finished work of the configured scale no longer needs."""
    project = graph.project
    work = LiveWork(project.layout.work)
    artifacts, on_request = graph.closure(graph.reports(project.papers)), graph.closure(graph.on_request)
    for run, needed in artifacts_by_run(artifacts, on_request).items():
        if not will_decode_again(project, needed):
            folder = project.layout.run(run)
            yield from old_checkpoints(folder, [project.layout.path(artifact) for artifact in needed], work)
    yield from old_runs(project, work)
    for name in project.datasets:
        yield from old_corpora(project.layout.corpus(name), work)
        yield from training_text(project, name)
        yield from audio(project, name)
    yield from old_downloads(project, datasets_in(artifacts))


def artifacts_by_run(artifacts: Iterable[Artifact], on_request: Iterable[Artifact]) -> dict[RunId, list[RunArtifact]]:
    """Return the artifacts that each run must have before its checkpoints may go.

    A table on request may never be made. Of a run that other reports read, it needs the averaged weights alone, which
    nothing but checkpoints can restore.

    Args:
        artifacts: Artifacts of the usual reports.
        on_request: Artifacts of the tables on request.
    """
    found = defaultdict[RunId, list[RunArtifact]](list)
    for artifact in artifacts:
        if isinstance(artifact, RunArtifact):
            found[artifact.run].append(artifact)
    usual = set(found)
    for artifact in on_request:
        if isinstance(artifact, RunArtifact) and (artifact.run not in usual or isinstance(artifact, Averaged)):
            found[artifact.run].append(artifact)
    return found


def will_decode_again(project: Project, needed: Iterable[Artifact]) -> bool:
    """Return whether a `needed` score is of other decoding settings; the current ones may average more checkpoints."""
    with suppress(UserError):  # a damaged record, which will be written again
        return any(isinstance(artifact, Score) and changed_decoding(project, artifact) for artifact in needed)
    return True


def reports_by_folder(graph: Graph) -> dict[Path, list[str]]:
    """Return the reports that depend on each run or corpus, by its folder."""
    layout = graph.project.layout
    found: dict[Path, list[str]] = {}
    for report in [*graph.reports(graph.project.papers), *graph.on_request]:
        name = str(layout.path(report).relative_to(layout.results))
        artifacts = graph.closure([report])
        folders = [layout.run(artifact.run) for artifact in artifacts if isinstance(artifact, RunArtifact)]
        folders += [layout.corpus(dataset) for dataset in datasets_in(artifacts)]
        for folder in dict.fromkeys(folders):
            found.setdefault(folder, []).append(name)
    return found


def old_checkpoints(folder: Path, needed: list[Path], work: LiveWork) -> Iterator[Unneeded]:
    """Yield the checkpoints of a finished run in `folder` if every output `needed` by reports exists."""
    checkpoints = tuple(sorted((folder / "checkpoints").glob("step-*.safetensors*")))
    if (
        checkpoints
        and all(path.exists() for path in needed)
        and is_whole(folder)
        and is_idle(folder, work.reason(folder))
    ):
        yield Unneeded("checkpoints", folder, checkpoints)


def is_idle(folder: Path, reason: str) -> bool:
    """Return whether nothing uses the run or corpus in a `folder`; otherwise log the `reason`."""
    if reason:
        log.warning("%s is kept: %s", folder, reason)
    return not reason


def old_runs(project: Project, work: LiveWork) -> Iterator[Unneeded]:
    """Yield runs of this scale with settings or data other than the current ones, but not those at work."""
    layout = project.layout
    for folder in sorted(layout.runs.glob("*/*/*/seed*")):
        paper, system, dataset, name = folder.relative_to(layout.runs).parts
        known = system in getattr(project.papers.get(paper), "systems", ()) and dataset in project.datasets
        seed = re.match(r"seed(\d+)", name)
        current = layout.run(RunId(paper, system, dataset, int(seed[1]))) if known and seed else None
        if folder != current and is_idle(folder, work.reason(folder) or work.reader(folder)):
            ended = (folder / DONE_FILE).exists() or (folder / WEIGHTS_FILE).exists()
            yield from everything_in("old-runs" if ended else "unfinished", folder)


def old_corpora(current: Path, work: LiveWork) -> Iterator[Unneeded]:
    """Yield the folders of earlier versions of a corpus that nobody reads."""
    name = current.name[:-DIGITS]
    for folder in sorted(current.parent.glob(name + "?" * DIGITS)):
        if folder != current and is_idle(folder, work.reader(folder)):
            yield from everything_in("old-corpora", folder)


def everything_in(kind: str, folder: Path) -> Iterator[Unneeded]:
    """Yield all files below a `folder`, if there are any, as one `kind` of `KINDS`."""
    if files := tuple(sorted(path for path in folder.rglob("*") if path.is_file())):
        yield Unneeded(kind, folder, files)


def is_whole(folder: Path) -> bool:
    """Return whether the training ended and its final weights match their recorded digest."""
    done, weights = folder / DONE_FILE, folder / WEIGHTS_FILE
    if not (done.exists() and weights.exists()):
        return False
    if sha256_file(weights) != TrainedRun.read(done).weights_digest:
        log.warning("%s: does not match the digest that the training recorded; keeping its checkpoints", weights)
        return False
    return True


def training_text(project: Project, name: str) -> Iterator[Unneeded]:
    """Yield the raw and prepared training text of a corpus that is encoded."""
    folder, form = project.layout.corpus(name), project.dataset_records[name].form
    found = [path for kind in ("raw", "prepared") for path in sorted((folder / kind).glob("train.*"))]
    files = [path for path in found if is_read_by_training_alone(path, form)]
    if files and project.layout.path(Encoded(name)).exists():
        # Without its marker file, Snakemake rebuilds the raw text if something needs it again.
        yield Unneeded("text", folder, (*existing(project, Raw(name)), *files))


def audio(project: Project, name: str) -> Iterator[Unneeded]:
    """Yield the audio of a speech corpus that is encoded."""
    folder = project.layout.corpus(name)
    files = sorted(path for path in (folder / "audio").rglob("*") if path.is_file())
    if files and project.layout.path(Encoded(name)).exists():
        yield Unneeded("audio", folder, (*existing(project, Raw(name), Spoken(name)), *files))


def existing(project: Project, *artifacts: Artifact) -> list[Path]:
    """Return the files of artifacts that exist."""
    return [path for path in map(project.layout.path, artifacts) if path.exists()]


def old_downloads(project: Project, read: Iterable[str]) -> Iterator[Unneeded]:
    """Yield fetched files if every dataset that reads them is extracted, also those that reports `read`.

    A file that has no address, nor a mirror with one, may be the only copy.
    """
    layout, mirror = project.layout, project.config.mirror
    readers: dict[str, set[str]] = {}
    for name in {*read, *(project.stand_in(dataset) for dataset in project.scale.datasets)}:
        for file, source in sources_of(project.dataset_records[name]).items():
            if source.documents or remote_urls(file, source, mirror):
                readers.setdefault(file, set()).add(name)
    done = [
        layout.downloads / file
        for file, names in readers.items()
        if all(is_extracted(layout.corpus(name)) for name in names)
    ]
    if files := tuple(path for path in done if path.is_file()):
        yield Unneeded("downloads", layout.downloads, files)
