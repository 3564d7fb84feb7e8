"""For each file that a dataset is made of: whether it is here, and if not, where it can be had."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pipeline.core.artifacts import Encoded, Raw
from pipeline.core.disk import format_bytes
from pipeline.core.layout import IN_CORPUS
from pipeline.data.dataset import AnyDataset, LicensedPackages, Source, sources_of
from pipeline.data.fetch.collect_trees import documents_folder
from pipeline.data.fetch.download import addresses, fault_of, is_noted, places, wrong_size
from pipeline.data.fetch.packages import expanded
from pipeline.data.fetch.web import Deadline, RequestError, answer

HASHED_AT_ONCE = 100_000_000  # bytes; a larger file that nobody verified yet is hashed on request
ANSWER_S = 5.0
REQUESTS_AT_ONCE = 16


@dataclass(frozen=True)
class DataFile:
    """One file.

    Attributes:
        state: verified; present (whole, as far as its size says, and verified before use); damaged; partial (a download
            that goes on); missing.
        note: where it is, what is wrong with it, or what it is called in a mirror.
        addresses: where it can be fetched from, each with the bytes that are to be there.
        done: bytes of it that a broken download left.
    """

    name: str
    state: Literal["verified", "present", "damaged", "partial", "missing"]
    note: str
    bytes: int | None = None
    addresses: dict[str, int | None] = field(default_factory=dict)
    done: int = 0

    @property
    def is_here(self) -> bool:
        return self.state in ("verified", "present")

    @property
    def to_fetch(self) -> int:
        """Bytes to download, as far as known."""
        return 0 if self.is_here else max(0, (self.bytes or 0) - self.done)


def is_extracted(corpus: Path) -> bool:
    """Whether a corpus needs its files no more."""
    return any((corpus / name).exists() for name in (IN_CORPUS[Raw], IN_CORPUS[Encoded]))


def fetched_files(dataset: AnyDataset, downloads: Path, mirror: str | None, verify: bool) -> list[DataFile]:
    """The files that a dataset fetches. verify: hash large ones too."""
    return [fetched_file(name, source, downloads, mirror, verify) for name, source in sources_of(dataset).items()]


def fetched_file(name: str, source: Source, downloads: Path, mirror: str | None, verify: bool) -> DataFile:
    faults = []
    for path in places(name, source, downloads, mirror):
        if not path.exists():
            continue
        here = path.stat().st_size
        if fault := wrong_size(path, source):
            faults.append(f"{path}: {fault}")
        elif not (verify or here <= HASHED_AT_ONCE or is_noted(path, source, downloads)):
            return DataFile(name, "present", str(path), here)
        elif fault := fault_of(path, source, downloads):
            faults.append(f"{path}: {fault}")
        else:
            return DataFile(name, "verified", str(path), here)
    known: dict[str, int | None] = dict.fromkeys(addresses(name, source, mirror), source.bytes)
    if source.documents:
        documents = documents_folder(name, downloads)
        if all((documents / document).exists() for document in source.documents.names):
            return DataFile(name, "present", f"{len(source.documents.names)} documents in {documents}", source.bytes)
        known[source.documents.folder + source.documents.names[0]] = None
    if faults:
        return DataFile(name, "damaged", "; ".join(faults), source.bytes, known)
    part = downloads / f"{name}.part"
    if part.exists():
        done = part.stat().st_size
        return DataFile(name, "partial", f"{format_bytes(done)} are in {part}", source.bytes, known, done)
    return DataFile(name, "missing", f"{source.mirror or name} in a mirror", source.bytes, known)


def package_files(dataset: AnyDataset, folders: dict[str, str]) -> list[DataFile]:
    """The files of licensed packages that a dataset reads, one by one, in the folders that config.yaml names."""
    if not isinstance(dataset, LicensedPackages):
        return []
    named = [package for package in dataset.packages if package in folders]
    paths = [
        Path(folders[package]) / name
        for package in named
        for member in dataset.package_members(package)
        for name in expanded(member)
    ]
    found = [
        DataFile(path.name, "present" if path.is_file() else "missing", str(path)) for path in dict.fromkeys(paths)
    ]
    unnamed = [package for package in dataset.packages if package not in folders]
    return found + [DataFile(name, "missing", f"{name}, whose folder config.yaml does not name") for name in unnamed]


def silent_addresses(files: list[DataFile]) -> dict[str, str]:
    """Fault by address, of those addresses of files that are not here which would not give them."""
    asked = {url: expected for file in files if not file.is_here for url, expected in file.addresses.items()}
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        faults = pool.map(fault_of_address, asked, asked.values())
    return {url: fault for url, fault in zip(asked, faults, strict=True) if fault}


def fault_of_address(url: str, expected: int | None) -> str | None:
    """Why an address would not give a file of so many bytes, from the head of its answer; None when it would."""
    try:
        with (
            Deadline(ANSWER_S) as deadline,
            answer(url, {"Range": "bytes=0-0"}, deadline, ANSWER_S) as response,
        ):
            if response.status_code not in (200, 206):
                return f"status {response.status_code} {response.reason}"
            partial = response.headers.get("Content-Range", "").rpartition("/")[2]
            length = partial if response.status_code == 206 else response.headers.get("Content-Length", "")
    except RequestError as error:
        return str(error).partition(":")[0]
    if expected is not None and length.isdecimal() and length != str(expected):
        return f"has {length} bytes, expected {expected}: another file"
    return None
