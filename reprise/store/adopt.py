"""Take over the folders of earlier versions, whose names did not say what is in them.

    work/corpora/NAME                   becomes   work/corpora/NAME-1a2b3c4d
    work/SCALE/runs/…/NAME/seed1        becomes   work/SCALE/runs/…/NAME/seed1-5e6f7a8b

The Snakefile does so when it is read: renaming loses nothing, costs nothing, and what is renamed already is left alone.
A run keeps the key that its files carry (`adopted.json`). Left as they are, with a line that says why: runs that a
process or a job works on, and those whose `run.yaml` is not what they were trained with.
"""

import logging
import os
import re
from pathlib import Path

import yaml

from pipeline.config import RunSpec, load_run
from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write
from pipeline.core.layout import DONE_FILE, RUN_FILE
from pipeline.core.records.corpus import read_corpus
from pipeline.core.records.jobs import Submission
from pipeline.core.records.record import read_note
from pipeline.core.records.training import TrainedRun
from pipeline.core.schema import load_yaml, validate
from pipeline.core.sha256 import sha256_json
from pipeline.papers.content import run_content
from pipeline.papers.project import Project
from pipeline.training.key import ADOPTED_FILE, Adopted, key_from
from pipeline.workflow.held import is_held

log = logging.getLogger(__name__)


def adopt(project: Project) -> None:
    """Rename what an earlier version left below the work folder, for the corpora and the configured scale.

    Killed at any time, the next one goes on: first the runs that no other takes weights from, at last the corpora.
    """
    layout = project.layout
    found = (path for path in layout.runs.glob("*/*/*/seed*") if re.fullmatch(r"seed\d+", path.name))
    runs = {path: spec for path in sorted(found) if (path / RUN_FILE).exists() and (spec := spec_of(path))}
    keys = {path: key for path in runs if (key := former_key(path, runs)) and is_free(path, key)}
    left = left_with(set(runs) - set(keys), runs)
    for path in sorted(set(runs) - left, key=lambda path: depth(path, runs), reverse=True):
        adopt_run(project, path, runs, keys)
    used = {Path(runs[path].corpus).parent for path in left}
    for name in project.datasets:
        old = layout.work / "corpora" / name
        if old.is_dir() and not (new := layout.corpus(name)).exists():
            rename(old, new)
            if old in used:
                old.symlink_to(new.name)


def left_with(left: set[Path], runs: dict[Path, RunSpec]) -> set[Path]:
    """What is left as it is, with all that weights are taken from or for it."""
    taken = {path: {Path(folder) for folder in spec.taken.values()} for path, spec in runs.items()}
    while more := {path for path in runs if taken[path] & left or any(path in taken[one] for one in left)} - left:
        for path in more:
            log.warning("%s is left as it is: so is a run whose weights it takes, or that takes its weights", path)
        left = left | more
    return left


def depth(path: Path, runs: dict[Path, RunSpec]) -> int:
    """How many runs have to be trained one after the other before this one."""
    taken = [Path(folder) for folder in runs[path].taken.values()]
    return max((1 + depth(folder, runs) for folder in taken if folder in runs), default=0)


def spec_of(path: Path) -> RunSpec | None:
    """With folders as seen from where the program was started. None, said, where it is faulty."""
    try:
        written: RunSpec = validate(RunSpec, load_yaml(path / RUN_FILE), str(path / RUN_FILE))
    except UserError as error:
        log.warning("%s is left as it is: %s", path, error)
        return None
    # As seen from the run's own folder: an adoption was killed before its last step, the renaming.
    return load_run(path / RUN_FILE) if written.corpus.startswith(os.pardir) else written


def former_key(path: Path, runs: dict[Path, RunSpec]) -> str | None:
    """The key of a run as earlier versions made it: of its specification as written. None where it can't be told."""
    if adopted := Adopted.read_if_there(path / ADOPTED_FILE):
        return adopted.key
    spec = runs[path]
    taken = {name: Path(folder) for name, folder in spec.taken.items()}
    parts = {name: former_key(folder, runs) if folder in runs else None for name, folder in taken.items()}
    try:
        corpus = read_corpus(Path(spec.corpus)).digest
    except UserError as error:
        log.warning("%s is left as it is: %s", path, error)
        return None
    if None in parts.values():
        return None
    content = {"spec": spec.model_dump(mode="json", exclude_defaults=True), "corpus": corpus}
    return sha256_json(content | ({"parts": parts} if parts else {}))


def is_free(path: Path, key: str) -> bool:
    """Whether nobody works on the run, and it was trained as its specification says."""
    done = TrainedRun.read_if_there(path / DONE_FILE)
    submission = read_note(Submission, path / "job.json")
    busy = is_held(path) or (submission is not None and submission.launcher == "slurm" and not done)
    if busy or (done and done.key != key):
        reason = "a process or a job works on it" if busy else "run.yaml is not what it was trained with"
        log.warning("%s is left as it is: %s", path, reason)
        return False
    return True


def adopt_run(project: Project, path: Path, runs: dict[Path, RunSpec], keys: dict[Path, str]) -> None:
    """Rename one run; its specification keeps its time, so that nothing is made anew."""
    spec, layout = runs[path], project.layout
    if spec.dataset not in project.datasets:
        return log.warning("%s is left as it is: there is no dataset %s any more", path, spec.dataset)
    new = renamed(project, path, runs)
    if new.exists():
        return log.warning("%s is left as it is: there is a %s", path, new.name)
    if not (path / ADOPTED_FILE).exists():
        parts = {name: keys[Path(folder)] for name, folder in spec.taken.items()}
        stands_for = key_from(spec, read_corpus(Path(spec.corpus)).digest, parts)
        Adopted(key=keys[path], stands_for=stands_for).write(path / ADOPTED_FILE)
    places = {spec.corpus: layout.corpus(spec.dataset) / "encoded"}
    places |= {folder: renamed(project, Path(folder), runs) for folder in spec.taken.values()}
    times = (path / RUN_FILE).stat()
    with atomic_write(path / RUN_FILE) as handle:
        yaml.safe_dump(spec.placed(lambda at: os.path.relpath(places[at], new)).model_dump(), handle, sort_keys=False)
    os.utime(path / RUN_FILE, ns=(times.st_atime_ns, times.st_mtime_ns))
    rename(path, new)


def renamed(project: Project, path: Path, runs: dict[Path, RunSpec]) -> Path:
    """Where a run belongs, by what it is made of."""
    return path.with_name(f"{path.name}-{content_of(project, path, runs)}") if path in runs else path


def content_of(project: Project, path: Path, runs: dict[Path, RunSpec]) -> str:
    if path not in runs:  # its name says so: a specification was rewritten already
        return path.name.rpartition("-")[2]
    spec = runs[path]
    parts = [content_of(project, Path(folder), runs) for folder in spec.taken.values()]
    return run_content(spec, project.corpus_content(spec.dataset), parts)


def rename(old: Path, new: Path) -> None:
    """Raises UserError where that is not allowed: left as it is, it would be made anew."""
    try:
        old.rename(new)
    except OSError as error:
        raise UserError(
            f"{old}: is to be renamed to {new.name}, once, and can't be ({error.strerror}); run any snakemake command "
            "once where the work folder may be written to"
        ) from error
    log.warning("%s is now %s", old, new.name)  # the only level that snakemake shows
