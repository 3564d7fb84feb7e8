"""State of each file of a dataset, and where to get it."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pipeline.core.artifacts import Encoded, Raw
from pipeline.core.disk import format_bytes
from pipeline.core.errors import count_of
from pipeline.core.layout import IN_CORPUS
from pipeline.data.dataset import AnyDataset, LicensedPackages, Source, sources_of
from pipeline.data.fetch import collect_trees, download, packages, transfer, web

HASHED_AT_ONCE = 100_000_000  # bytes; a larger file that was not verified yet is hashed only on request
ANSWER_S = 5.0
REQUESTS_AT_ONCE = 16


@dataclass(frozen=True)
class DataFile:
    """A file of a dataset.

    Attributes:
        state: verified; present (size is right, verified before use); damaged; partial (unfinished download); missing.
        note: Where it is, what is wrong with it, or its name in a mirror.
        bytes: Its size, if known.
        addresses: URLs, each with the bytes that it should serve.
        done: Bytes that an interrupted download left.
    """

    name: str
    state: Literal["verified", "present", "damaged", "partial", "missing"]
    note: str
    bytes: int | None = None
    addresses: dict[str, int | None] = field(default_factory=dict)
    done: int = 0

    @property
    def is_here(self) -> bool:
        """Return whether the file can be used."""
        return self.state in ("verified", "present")

    @property
    def to_fetch(self) -> int:
        """Return the bytes to download, as far as known."""
        return 0 if self.is_here else max(0, (self.bytes or 0) - self.done)


def is_extracted(corpus: Path) -> bool:
    """Return whether a corpus no longer needs its files."""
    return any((corpus / name).exists() for name in (IN_CORPUS[Raw], IN_CORPUS[Encoded]))


def fetched_files(dataset: AnyDataset, downloads: Path, mirror: str | None, verify: bool) -> list[DataFile]:
    """Return the state of each file that a dataset fetches (see `fetched_file`)."""
    return [fetched_file(name, source, downloads, mirror, verify) for name, source in sources_of(dataset).items()]


def fetched_file(name: str, source: Source, downloads: Path, mirror: str | None, verify: bool) -> DataFile:
    """Return the state of one file in downloads and mirror.

    Args:
        name: Name of the file in downloads.
        source: Its size, checksum and addresses.
        downloads: Folder of downloaded files.
        mirror: Folder or URL tried before the public addresses; None = none.
        verify: Hash the file even if it is large.
    """
    faults = []
    for path in download.local_paths(name, source, downloads, mirror):
        here = path.stat().st_size
        if fault := download.wrong_size(path, source):
            faults.append(f"{path}: {fault}")
        elif not (verify or here <= HASHED_AT_ONCE or download.is_noted(path, source, downloads)):
            return DataFile(name, "present", str(path), here)
        elif fault := download.fault_of(path, source, downloads):
            faults.append(f"{path}: {fault}")
        else:
            return DataFile(name, "verified", str(path), here)
    known: dict[str, int | None] = dict.fromkeys(download.remote_urls(name, source, mirror), source.bytes)
    if source.documents:
        documents = collect_trees.documents_folder(name, downloads)
        if all((documents / document).exists() for document in source.documents.names):
            return DataFile(
                name, "present", f"{count_of(len(source.documents.names), 'document')} in {documents}", source.bytes
            )
        known[source.documents.folder + source.documents.names[0]] = None
    if faults:
        return DataFile(name, "damaged", "; ".join(faults), source.bytes, known)
    part = transfer.part_of(downloads / name)
    if part.exists():
        done = part.stat().st_size
        return DataFile(name, "partial", f"{format_bytes(done)} are in {part}", source.bytes, known, done)
    return DataFile(name, "missing", f"{source.mirror or name} in a mirror", source.bytes, known)


def package_files(dataset: AnyDataset, folders: dict[str, str]) -> list[DataFile]:
    """Return the files of licensed packages that a dataset reads, in the folders that config.yaml names."""
    if not isinstance(dataset, LicensedPackages):
        return []
    named = [package for package in dataset.packages if package in folders]
    paths = [
        Path(folders[package]) / name
        for package in named
        for member in dataset.package_members(package)
        for name in packages.expand_numbers(member)
    ]
    found = [
        DataFile(path.name, "present" if path.is_file() else "missing", str(path)) for path in dict.fromkeys(paths)
    ]
    unnamed = [package for package in dataset.packages if package not in folders]
    return found + [DataFile(name, "missing", f"{name}, whose folder config.yaml does not name") for name in unnamed]


def silent_addresses(files: list[DataFile]) -> dict[str, str]:
    """Return the fault of each address that would not serve its missing file."""
    asked = {url: expected for file in files if not file.is_here for url, expected in file.addresses.items()}
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        faults = pool.map(fault_of_address, asked, asked.values())
    return {url: fault for url, fault in zip(asked, faults, strict=True) if fault}


def fault_of_address(url: str, expected: int | None) -> str | None:
    """Return why a `url` would not serve a file of `expected` bytes, from the headers of its answer, or None."""
    try:
        with (
            web.Deadline(ANSWER_S) as deadline,
            web.open_response(url, {"Range": "bytes=0-0"}, deadline, ANSWER_S) as response,
        ):
            if response.status_code not in (200, 206):
                return f"status {response.status_code} {response.reason}"
            partial = response.headers.get("Content-Range", "").rpartition("/")[2]
            length = partial if response.status_code == 206 else response.headers.get("Content-Length", "")
            if transfer.is_web_page(response) and not length.isdecimal():
                return "sends a web page instead of the file"
    except web.RequestError as error:
        return str(error).partition(":")[0]
    if expected is not None and length.isdecimal() and length != str(expected):
        return f"has {length} bytes, expected {expected}: another file"
    return None
