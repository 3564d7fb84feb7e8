"""Fetch the files of a dataset, verify them, and write its raw splits.

    python -m pipeline download --dataset workflow/datasets/multi30k-en-de.yaml \
        --downloads work/downloads --corpus work/corpora/multi30k-en-de

reads   the mirror, if one is given, then the addresses of the dataset file in turn
writes  <downloads>/<file>                     fetched files, shared by all datasets
        <corpus>/raw/{train,dev,test}.<lang>   plain text, line n of one language translates line n of the other

Nothing is used before its checksum is verified. `--mirror` is a folder or a URL that holds files already fetched;
files in a folder are used where they are.
"""

import argparse
import logging
import time
from pathlib import Path

import pooch
import requests

from pipeline.data.dataset import DownloadedDataset, Source, load_dataset
from pipeline.data.raw_text import write_raw_splits
from pipeline.errors import UserError

log = logging.getLogger(__name__)

ATTEMPTS = 3
FIRST_PAUSE_SECONDS = 1.0  # doubles with each attempt
TIMEOUT_SECONDS = 30
SECONDS_BETWEEN_LINES = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dataset", type=Path, required=True, help="dataset file")
    parser.add_argument("--downloads", type=Path, required=True, help="folder of fetched files")
    parser.add_argument("--corpus", type=Path, required=True, help="folder of the corpus")
    parser.add_argument("--mirror", help="folder or URL tried first")


def run(args: argparse.Namespace) -> None:
    dataset = load_dataset(args.dataset)
    if not isinstance(dataset, DownloadedDataset):
        raise UserError(f"{args.dataset}: nothing to download, kind is {dataset.kind!r}; run the stage `grammar`")
    write_raw_splits(dataset, fetch_all(dataset, args.downloads, args.mirror), args.corpus)


def fetch_all(dataset: DownloadedDataset, downloads: Path, mirror: str | None) -> dict[str, Path]:
    """Verified local files by source name; all are tried before any failure is reported.

    Raises:
        UserError: listing every file that could not be had, and why.
    """
    found, missing = {}, []
    for name, source in dataset.sources.items():
        try:
            found[name] = fetch(name, source, downloads, mirror)
        except UserError as error:
            log.warning("%s", error)
            missing.append(str(error))
    if missing:
        raise UserError(
            f"{dataset.name}: {len(missing)} of {len(dataset.sources)} files are missing:\n"
            + "\n".join(missing)
            + f"\nput them into {downloads}, or name a folder that has them as `mirror:`"
        )
    return found


def fetch(name: str, source: Source, downloads: Path, mirror: str | None) -> Path:
    """The verified local path of one source. Raises UserError with what happened at each place it was sought."""
    target, failures = downloads / name, []
    below_mirror = source.mirror or name
    places = [target]
    if mirror and "://" not in mirror:
        places.append(Path(mirror) / below_mirror)
    for path in places:
        if path.exists() and (fault := mismatch(path, source)) is None:
            return path
        if path.exists():
            log.warning("%s is not used: %s", path, fault)
            failures.append(f"{path}: {fault}")
    remote = [f"{mirror.rstrip('/')}/{below_mirror}"] if mirror and "://" in mirror else []
    for url in (*remote, *source.urls):
        try:
            return fetch_url(url, target, source.known_hash, source.bytes)
        except DownloadError as error:
            log.warning("%s", error)
            failures.append(str(error))
    raise UserError(f"{name}: " + "; ".join(failures))


class DownloadError(Exception):
    """One address did not yield the file; the next one is tried."""


def fetch_url(url: str, target: Path, known_hash: str | None, expected_bytes: int | None = None) -> Path:
    """Download `url` to `target`, with retries; the file appears there whole and verified, or not at all.

    known_hash: as `sha256:…`; None = what the address yields is verified later, with what else it belongs to.
    """
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(FIRST_PAUSE_SECONDS * 2 ** (attempt - 1))
        try:
            downloader = Downloader(expected_bytes)
            pooch.retrieve(url, known_hash, target.name, target.parent, downloader=downloader)
            return target
        except requests.RequestException as error:
            failure = f"{url}: {type(error).__name__}: {error}"
            log.info("%s (attempt %d of %d)", failure, attempt + 1, ATTEMPTS)
        except ValueError as error:  # pooch's verdict on the checksum: a truncated or altered file
            failure = f"{url}: {str(error).split(' Deleted')[0]}"
            log.info("%s (attempt %d of %d)", failure, attempt + 1, ATTEMPTS)
        except OSError as error:
            raise UserError(
                f"can't write {target}: {error.strerror or error}; free some space or change `work:`"
            ) from error
    raise DownloadError(failure)


class Downloader:
    """Streams a URL to a file, with a log line every few seconds (the interface that pooch asks of a downloader)."""

    def __init__(self, expected_bytes: int | None):
        self.expected_bytes = expected_bytes

    def __call__(self, url: str, output_file: str, pooch: object) -> None:
        start = said = time.monotonic()
        done = 0
        with requests.get(url, stream=True, timeout=TIMEOUT_SECONDS) as response, open(output_file, "wb") as file:
            response.raise_for_status()
            for block in response.iter_content(1 << 20):
                file.write(block)
                done += len(block)
                if time.monotonic() - said > SECONDS_BETWEEN_LINES:
                    said = time.monotonic()
                    log.info("%s: %s", url, self.progress(done, said - start))
        log.info("%s: %s", url, self.progress(done, time.monotonic() - start))

    def progress(self, done: int, seconds: float) -> str:
        total = f" of {self.expected_bytes / 1e6:,.1f}" if self.expected_bytes else ""
        return f"{done / 1e6:,.1f}{total} MB, {done / 1e6 / max(seconds, 1e-3):,.1f} MB/s"


def mismatch(path: Path, source: Source) -> str | None:
    """What is wrong with a local file, or None when its checksum is right."""
    algorithm, _, expected = source.known_hash.partition(":")
    found = pooch.file_hash(str(path), alg=algorithm)
    if found == expected:
        return None
    size = f" ({path.stat().st_size} bytes, expected {source.bytes})" if source.bytes else ""
    return f"{algorithm} expected {expected}, got {found}{size}"
