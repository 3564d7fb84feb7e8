"""List which data files are present, and how to get the others."""

import logging
from collections.abc import Iterable, Iterator
from typing import Annotated

from pipeline.core.artifacts import RunId
from pipeline.core.command_line import Argument
from pipeline.core.disk import format_bytes
from pipeline.core.errors import UserError, count_of, first_of
from pipeline.core.schema import require_known
from pipeline.data.dataset import AnyDataset, LicensedPackages, ReadAloudDataset, sources_of
from pipeline.papers.project import Project, ProjectOptions
from pipeline.planning.data_files import DataFile, fetched_files, is_extracted, package_files, silent_addresses
from pipeline.planning.domain_gap import faults_of_positions, faults_of_text, transcripts
from pipeline.workflow.graph import Graph, datasets_in, runs_in
from pipeline.workflow.targets import snakemake_command

log = logging.getLogger(__name__)

SHOWN = 10
CATALOGUE = "https://catalog.ldc.upenn.edu/"


def check_data(
    *,
    paper: Annotated[tuple[str, ...], Argument(repeated=True)] = (),
    dataset: Annotated[tuple[str, ...], Argument(repeated=True)] = (),
    offline: bool = False,
    verify: bool = False,
    project: ProjectOptions,
) -> None:
    """List which data files are present, and how to get the others.

        python -m pipeline check-data --set scale=paper
        python -m pipeline check-data --set scale=small --paper weighted --offline

    reads   the dataset files, <work>/downloads, the mirror, and the folders of licensed packages
    writes  nothing but its log

    Takes seconds. Fails if a file of a licensed package is missing, or another file for which no address answers. With
    --offline, fails if any file is missing. Also fails if two speech domains that are present do not differ as their
    dataset requires (domain_gap.py). Files above 100 MB that were not verified yet are hashed with --verify, and in
    any case before they are used.

    Args:
        paper: Paper whose data is checked. May be given several times; by default all that are reproduced.
        dataset: Dataset to check instead. May be given several times.
        offline: Contact no address. A missing file is an error.
        verify: Hash large files.
        project: The project and its settings.
    """
    loaded = project.load(paper)
    for name in dataset:
        require_known(name, loaded.datasets, "--dataset")
    for warning in loaded.partly_licensed():
        log.warning("%s", warning)
    graph = Graph(loaded)
    artifacts = graph.closure(graph.reports(paper or loaded.reproduced))
    needed = dataset or datasets_in(artifacts)
    check(loaded, needed, offline, verify)
    check_gaps(loaded, needed, runs_in(artifacts))


def check(project: Project, names: Iterable[str], offline: bool = False, verify: bool = False) -> None:
    """Report on the datasets `names`; `offline` counts a missing file as failure, `verify` hashes large ones too.

    Raises:
        UserError: Files cannot be obtained. The message lists them.
    """
    failures: list[tuple[str, str]] = []
    log_stand_ins(project)
    files = {name: files_of(project, name, verify) for name in names}
    silent = {} if offline else silent_addresses([file for found in files.values() for file in found])
    to_fetch: dict[str, int] = {}
    for name, found in files.items():
        log_dataset(project, name, found, silent, offline)
        to_fetch |= {file.name: file.to_fetch for file in found}
        if lost := [file for file in found if not file.is_here and (offline or not set(file.addresses) - set(silent))]:
            failures += explain_missing(project, project.dataset_records[name], lost)
    if failures:
        raise UserError("\n".join(by_remedy(failures)))
    log.info("%s; %s to fetch", count_of(len(files), "dataset"), format_bytes(sum(to_fetch.values())))


def check_gaps(project: Project, names: Iterable[str], runs: Iterable[RunId]) -> None:
    """Check that domains of speech differ as their dataset files say.

    Raises:
        UserError: Some do not. The message lists them.
    """
    failures: list[str] = []
    for name in names:
        target = project.dataset_records[name]
        if not (isinstance(target, ReadAloudDataset) and target.gap):
            continue
        require_known(source := target.gap.source, project.datasets, f"workflow/datasets/{name}.yaml: gap.source")
        if any(not file.is_here for owner in (source, name) for file in files_of(project, owner, verify=False)):
            log.info("%s: can be compared with %s only when the files of both are here", name, source)
            continue
        summary, faults = faults_of_text(target.gap, transcripts(project, source), transcripts(project, name))
        log.info("%s: %s", name, summary)
        faults += faults_of_positions(project, target.gap, [run for run in runs if run.dataset in (source, name)])
        failures += [f"workflow/datasets/{name}.yaml: `gap` does not hold: {fault}" for fault in faults]
    if failures:
        raise UserError("\n".join(failures))


def files_of(project: Project, name: str, verify: bool) -> list[DataFile]:
    """Return all files that a dataset `name` needs, hashed if `verify`; none if its raw text was extracted already."""
    if is_extracted(project.layout.corpus(name)):
        return []
    dataset, config = project.dataset_records[name], project.config
    fetched = fetched_files(dataset, project.layout.downloads, config.mirror, verify)
    return [*fetched, *package_files(dataset, project.licensed)]


def log_stand_ins(project: Project) -> None:
    """Log the licensed packages that could replace stand-ins."""
    for name in project.scale.datasets.values():
        record = project.dataset_records[name]
        if not isinstance(record, LicensedPackages):
            continue
        for package, holds in record.packages.items():
            if package not in project.licensed:
                log.info("%s: needs %s, %s; %s stands in", name, package, holds, record.otherwise)
                where = f", available from {CATALOGUE}{package}" if package.startswith("LDC") else ""
                log.info("  to use it: licensed: {%s: FOLDER} in config.yaml%s", package, where)


def log_dataset(project: Project, name: str, files: list[DataFile], silent: dict[str, str], offline: bool) -> None:
    """Log dataset `name`: state, licence, and its `files`, missing first, with `silent` ones unless `offline`."""
    record = project.dataset_records[name]
    if not files:
        origin = "extracted already" if sources_of(record) else "written by the grammar, nothing to fetch"
        return log.info("%s: %s", name, origin)
    missing = [file for file in files if not file.is_here]
    log.info("%s: %s", name, record.title)
    log.info("  licence: %s", record.licence)
    if kept := [source for source in sources_of(record).values() if not source.redistributable]:
        log.info("  %d of its files must not be redistributed, or their licence does not say that they may", len(kept))
    unknown = sum(file.bytes is None for file in missing)
    log.info(
        "  %s here; %s to fetch%s",
        count_of(len(files) - len(missing), f"of {len(files)} files is", f"of {len(files)} files are"),
        format_bytes(sum(file.to_fetch for file in missing)),
        f", and {count_of(unknown, 'file')} of unknown size" if unknown else "",
    )
    for file in sorted(files, key=lambda file: file.is_here)[:SHOWN]:
        log.info(
            "  %-8s  %-40s %9s  %s", file.state, file.name, format_bytes(file.bytes) if file.bytes else "", file.note
        )
        for url in () if file.is_here else file.addresses:
            log.info("            %s%s", url, "" if offline else f": {silent.get(url, 'answers')}")
    if len(files) > SHOWN:
        log.info("  and %d more", len(files) - SHOWN)


def by_remedy(failures: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield lines about `failures`, faults and remedies of datasets, that name each remedy once."""
    faults: dict[str, list[str]] = {}
    for fault, remedy in failures:
        faults.setdefault(remedy, []).append(fault)
    for remedy, found in faults.items():
        if len(found) == 1:
            yield f"{found[0]}; {remedy}"
        else:  # the summary comes first, because Snakemake repeats only the first line
            yield f"files of {len(found)} datasets are missing or damaged; {remedy}"
            yield from (f"  {fault}" for fault in found)


def explain_missing(project: Project, record: AnyDataset, lost: list[DataFile]) -> Iterator[tuple[str, str]]:
    """Yield which files cannot be obtained, each time with what to do."""
    fetched, packages = sources_of(record), record.packages if isinstance(record, LicensedPackages) else {}
    if licensed := [file.note for file in lost if file.name not in fetched]:
        of_packages = f"of {', '.join(packages)}"
        yield (
            f"{record.name}: {count_of(len(licensed), f'file {of_packages} is', f'files {of_packages} are')} missing: "
            f"{first_of(licensed, SHOWN)}",
            "complete the folder, or correct `licensed:` in config.yaml",
        )
    damaged = [file for file in lost if file.state == "damaged"]
    own = {name for name, source in fetched.items() if source.path}
    if changed := [file.note for file in damaged if file.name in own]:
        yield (
            f"{record.name}: changed: {first_of(changed, SHOWN)}",
            "restore the old files, or write the new sha256 and number of lines into "
            f"workflow/datasets/{record.name}.yaml, which defines another corpus",
        )
    if others := [file.note for file in damaged if file.name not in own]:
        yield f"{record.name}: damaged: {first_of(others, SHOWN)}", "replace them with intact copies"
    public = [file.name for file in lost if file.name in fetched and file.state != "damaged"]
    if joined := [name for name in public if fetched[name].documents]:
        yield (
            f"{record.name}: {first_of(joined, SHOWN)}: published as single documents",
            f"on a machine with network access, run `snakemake --config scale={project.config.scale} -- fetch` and "
            f"copy its `downloads` to {project.layout.downloads}",
        )
    if files := [fetched[name].mirror or name for name in public if name not in joined]:
        yield (
            f"{record.name}: {count_of(len(files), 'file is', 'files are')} missing: {first_of(files, SHOWN)}",
            "check the network, or download them elsewhere under these names and set `mirror:` in config.yaml to "
            f"their folder; `{snakemake_command(project, 'check_data')}` lists their addresses",
        )
