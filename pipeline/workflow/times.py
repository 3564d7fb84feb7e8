"""Restore modification times that a copy of the work folder lost.

Snakemake reruns a job when an input is newer than an output. `cp -r` gives every file a new time, so a copied work
folder would be rebuilt although nothing changed. The note of a file (pipeline/core/digests.py) holds its original time.
An input that is newer than its artifact but has the recorded content gets that time back. This runs when the Snakefile
is read. Files are only hashed if an input is newer than an output.
"""

import hashlib
import logging
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from pipeline.core.artifacts import Artifact, Encoded, Prepared, Report, manifest_of
from pipeline.core.digests import DamagedNoteError, noted_files, read_note
from pipeline.core.errors import count_of
from pipeline.core.layout import RESULTS, SITE
from pipeline.papers.project import Project
from pipeline.workflow.graph import Graph, flatten

log = logging.getLogger(__name__)


def restore_times(project: Project) -> None:
    """Restore the times of unchanged inputs that are newer than their artifacts.

    The last artifacts come first, so each has its final time when it is compared with its inputs. Artifacts that share
    a manifest may still lower its time, so passes repeat until nothing changes.
    """
    if not Path(project.config.work).is_dir():
        return
    graph = Graph(project)
    artifacts = graph.closure(graph.readable(project.papers))
    noted_beside.cache_clear()
    restored = sum(restore_report(graph, artifact) for artifact in artifacts if isinstance(artifact, Report))
    while found := sum(restore_inputs(graph, artifact) for artifact in reversed(artifacts)):
        restored += found
    if restored:
        log.info("restored the times of %s", count_of(restored, "copied file"))


def restore_inputs(graph: Graph, artifact: Artifact) -> int:
    """Compare the inputs of an artifact with the artifact.

    Returns:
        The number of inputs whose time was restored.
    """
    made_ns = oldest(output_files(graph, artifact))
    inputs = (path for source in flatten(graph.inputs(artifact)) for path in output_files(graph, source))
    return sum(restore(path, made_ns) for path in inputs)


def restore_report(graph: Graph, report: Report) -> int:
    """Compare a report with the files made from it: the site, and the view of the configured paper's tables.

    Returns:
        The number of its files whose time was restored.
    """
    mark = graph.project.layout.path(report)
    is_viewed = mark.parent == graph.project.layout.results / graph.project.config.paper
    return sum(
        restore(path, oldest([SITE, *([RESULTS / path.name] if is_viewed else [])]))
        for path in output_files(graph, report)
    )


def output_files(graph: Graph, artifact: Artifact) -> list[Path]:
    """Return the file that stands for an artifact, and files of the same name that its job also writes.

    Outputs and scores of a decoding are declared by their manifest alone. The job that encodes speech also writes its
    report of preparation.

    Returns:
        The paths, which need not exist.
    """
    mark = graph.project.layout.target(artifact)
    if manifest_of(artifact) is not artifact:
        return [mark]
    beside = [path for path in noted_beside(mark.parent) if path.name.startswith(f"{mark.stem}.")]
    if isinstance(artifact, Encoded) and Prepared(artifact.dataset) not in flatten(graph.inputs(artifact)):
        beside.append(graph.project.layout.path(Prepared(artifact.dataset)))
    return list(dict.fromkeys([mark, *beside]))


@cache
def noted_beside(folder: Path) -> list[Path]:
    """Return the noted files of a folder, read once."""
    return noted_files(folder)


def oldest(paths: Iterable[Path]) -> int | None:
    """Return the earliest modification time, in ns, of the existing files."""
    return min((found for path in paths if (found := modified_ns(path)) is not None), default=None)


def modified_ns(path: Path) -> int | None:
    """Return the modification time of a file, in ns; None if it does not exist."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


def restore(path: Path, made_ns: int | None) -> bool:
    """Restore a `path` newer than its artifact (`made_ns`) with its recorded content; return whether it was."""
    now_ns = modified_ns(path)
    if made_ns is None or now_ns is None or now_ns <= made_ns:
        return False
    try:
        note = read_note(path)
        if note is None or note.changed_ns is None or note.changed_ns > made_ns:
            return False
        return set_time_if_unchanged(path, note.digest, note.changed_ns)
    except (DamagedNoteError, OSError) as error:
        log.warning("%s: its time is not restored: %s", path, error)
        return False


def set_time_if_unchanged(path: Path, digest: str, changed_ns: int) -> bool:
    """Set the time of the file that was hashed, even if another file has just taken its name.

    Args:
        path: The file.
        digest: Its recorded SHA-256.
        changed_ns: Its recorded modification time, ns.

    Returns:
        Whether the content was unchanged, so that the time was set.
    """
    with open(path, "rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != digest:
            return False
        os.utime(file.fileno(), ns=(changed_ns, changed_ns))
    return True
