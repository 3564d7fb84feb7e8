"""Stages `download` and `generate`: raw splits from fetched and verified files, or from the embedded grammar.

Verified files are noted in `<downloads>/.verified/<checksum>.json`, so that 60 GB are hashed once and not before every
use. A note counts while the file keeps its size and modification time.
"""

import logging
import os
from pathlib import Path

from pipeline.core.disk import require_space
from pipeline.core.errors import UserError, count_of
from pipeline.core.records.corpus import VerifiedFile
from pipeline.data import dataset as datasets
from pipeline.data.fetch import packages, raw_text, transfer

log = logging.getLogger(__name__)


def download(
    *, dataset: Path, downloads: Path, corpus: Path, mirror: str | None = None, package: packages.Packages = ()
) -> None:
    r"""Fetch and verify the files of a dataset, and write its raw splits.

        python -m pipeline download --dataset workflow/datasets/multi30k-en-de.yaml \
            --downloads work/downloads --corpus work/corpora/multi30k-en-de

    reads   the mirror, if one is given, then the addresses of the dataset file in turn; folders of licensed packages
    writes  <downloads>/<file>                     fetched files, shared by all datasets
            <corpus>/raw/{train,dev,test}.<lang>   plain text, line n of one language translates line n of the other
            <corpus>/raw.done                      the names of these

    No file is used before its checksum is verified, once for each file. An interrupted download resumes. Files in a
    mirror that is a folder are used where they are.

    Args:
        dataset: Dataset file.
        downloads: Folder of fetched files.
        corpus: Folder of the corpus.
        mirror: Folder or URL that is tried first; variables such as `$MIRROR` are expanded.
        package: Folder of a licensed package, or of your own corpus. May be given several times.
    """
    record = datasets.load_one_of(
        dataset, datasets.DownloadedDataset, "what is downloaded; `generate` is for the grammar"
    )
    folders = packages.package_folders(record, package)
    for name in record.packages:
        packages.existing_files(name, folders[name], record.package_members(name))
    raw_text.write_raw_splits(record, fetch_all(record, downloads, expand_variables(mirror)) | folders, corpus)
    raw_text.write_raw_mark(corpus)


def generate(*, dataset: Path, corpus: Path) -> None:
    """Write a corpus with the embedded grammar.

        python -m pipeline generate --dataset workflow/datasets/grammar-en-de.yaml --corpus work/corpora/grammar-en-de

    reads   the dataset file alone; needs no network
    writes  <corpus>/raw/<split>.<lang>         plain text, line n of one language translates line n of the other
            <corpus>/<split>.trees              English trees
            <corpus>/<split>.phenomena.jsonl    the phenomena in each line
            <corpus>/raw.done                   the names of these

    Args:
        dataset: Dataset file.
        corpus: Folder of the corpus.
    """
    from pipeline.grammar.splits import write_splits  # loads the lexicon, which `download` does not need

    record = datasets.load_one_of(
        dataset, datasets.GrammarDataset | datasets.GrammarTreebank, "what the grammar writes"
    )
    wanted = record.generator
    languages = [record.src] if isinstance(record, datasets.GrammarTreebank) else list(record.languages)
    sizes, chained = (dict[str, int](counts.items()) for counts in (wanted.sizes, wanted.chained))
    write_splits(corpus, languages, sizes, wanted.domain, wanted.seed, chained, f"{dataset}: generator.sizes")
    raw_text.write_raw_mark(corpus)
    log.info("%s: %d sentences of domain %s", corpus, sum(wanted.sizes.values()), wanted.domain)


def expand_variables(mirror: str | None) -> str | None:
    """Expand environment variables in a mirror's address, so that no command line holds its password."""
    return mirror and os.path.expandvars(mirror)


def fetch_all(dataset: datasets.AnyDataset, downloads: Path, mirror: str | None) -> dict[str, Path]:
    """Return the local path of each source of a `dataset`, fetched and verified; see `fetch`.

    Raises:
        UserError: Some files could not be fetched; the message lists each with the reason.
    """
    sources, found, missing = datasets.sources_of(dataset), {}, []
    to_receive = sum(
        max(0, (source.bytes or 0) - transfer.received_bytes(downloads / name))
        for name, source in sources.items()
        if not local_paths(name, source, downloads, mirror)
    )
    require_space(downloads, to_receive, f"fetching {dataset.name}")
    for name, source in sources.items():
        try:
            found[name] = fetch(name, source, downloads, mirror)
        except UserError as error:
            log.warning("%s", error)
            missing.append(str(error))
    if missing:
        raise UserError(
            f"{dataset.name}: {len(missing)} of {count_of(len(sources), 'file')} missing:\n"
            + "\n".join(missing)
            + f"\nput them into {downloads}, or set `mirror:` to a folder that has them"
        )
    return found


def fetch(name: str, source: datasets.Source, downloads: Path, mirror: str | None) -> Path:
    """Return the verified local path of one source, fetching it if needed.

    Args:
        name: Name of the source.
        source: Source with its addresses and checksum.
        downloads: Folder of fetched files.
        mirror: Folder or URL that is tried first; None tries the addresses alone.

    Raises:
        UserError: No place has it; the message lists what happened at each.
    """
    target, failures = downloads / name, []
    for path in local_paths(name, source, downloads, mirror):
        if (fault := fault_of(path, source, downloads)) is None:
            return path
        log.warning("%s is not used: %s", path, fault)
        failures.append(f"{path}: {fault}")
    for url in remote_urls(name, source, mirror):
        try:
            path = transfer.fetch_url(url, target, source.known_hash, source.bytes)
            note_verified(path, source, downloads)
            return path
        except transfer.DownloadError as error:
            log.warning("%s", error)
            failures.append(str(error))
    raise UserError(
        f"{name}: " + ("; ".join(failures) or "it has no public address; set `mirror:` to a folder that has it")
    )


def local_paths(name: str, source: datasets.Source, downloads: Path, mirror: str | None) -> list[Path]:
    """Return the paths where a file exists already, as far as folders may be searched; see `fetch`."""
    local = [Path(mirror) / (source.mirror or name)] if mirror and "://" not in mirror else []
    own = [Path(source.path)] if source.path else []
    return [path for path in (*own, downloads / name, *local) if os.path.exists(path)]


def remote_urls(name: str, source: datasets.Source, mirror: str | None) -> list[str]:
    """Return the addresses from which a file may be fetched, best first; see `fetch`."""
    remote = [f"{mirror.rstrip('/')}/{source.mirror or name}"] if mirror and "://" in mirror else []
    return [*remote, *source.urls]


def fault_of(path: Path, source: datasets.Source, downloads: Path) -> str | None:
    """Return what is wrong with a local `path` of a `source`, or None; notes in `downloads` spare hashing it."""
    if (fault := wrong_size(path, source)) or is_noted(path, source, downloads):
        return fault
    try:
        fault = transfer.mismatch(path, source.known_hash)
    except (IsADirectoryError, PermissionError) as error:
        return error.strerror
    if fault is None:
        note_verified(path, source, downloads)
    return fault


def wrong_size(path: Path, source: datasets.Source) -> str | None:
    """Return what is wrong with the size of `path`, or None if it is that of the `source` or unknown."""
    found = path.stat().st_size
    return f"{found} bytes, expected {source.bytes}" if source.bytes not in (None, found) else None


def is_noted(path: Path, source: datasets.Source, downloads: Path) -> bool:
    """Return whether a note in `downloads` says that `path` is the `source` and has not changed since."""
    return VerifiedFile.read_if_valid(note_path(source, downloads)) == file_state(path)


def note_verified(path: Path, source: datasets.Source, downloads: Path) -> None:
    """Note in `downloads` that `path` is the verified `source`."""
    try:
        file_state(path).write(note_path(source, downloads))
    except UserError as error:
        log.info("%s will be hashed again next time: %s", path, error)


def note_path(source: datasets.Source, downloads: Path) -> Path:
    """Return the path of the note on a `source` in `downloads`."""
    return downloads / ".verified" / f"{source.known_hash.replace(':', '-')}.json"


def file_state(path: Path) -> VerifiedFile:
    """Return path, its bytes that are not UTF-8 escaped, size and modification time of a file."""
    found = path.stat()
    name = os.fsencode(path.resolve()).decode(errors="backslashreplace")
    return VerifiedFile(path=name, bytes=found.st_size, changed_ns=found.st_mtime_ns)
