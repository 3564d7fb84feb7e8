"""Content hashes of runs and corpora, which end their folders' names and are known before anything is built.

The hash of a corpus covers the settings of its preparation and the checksums of its sources. The hash of a run
covers its settings, its corpus and the runs whose weights it loads. Neither covers the work folder, the version of the
program or descriptions. Built files are verified against the digests in their records.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from pipeline.config import RunSpec
from pipeline.core.digests import sha256_file, sha256_json
from pipeline.core.errors import UserError
from pipeline.core.json_csv import read_json, write_json
from pipeline.data.dataset import AnyDataset, Source, sources_of
from pipeline.data.dataset.base import LicensedPackages
from pipeline.data.fetch.packages import expand_numbers

DIGITS = 8
PREPARATION = TRAINING = 1
"""Raise these when equal settings give other results than before. All folders then get new names."""
DESCRIPTIONS = {
    *("name", "title", "licence", "citation", "stands_in_for", "dev_set", "test_set", "further_test_sets"),
    *("packages", "folder", "otherwise", "expected", "size", "sources", "gap"),
}
"""Keys of a dataset that do not affect its corpus, or that `CorpusContents` hashes in another way."""


def run_content(spec: RunSpec, corpus: str, parts: Iterable[str]) -> str:
    """Return the content hash of a run from those of its `corpus` and the runs whose weights it loads, `parts`."""
    named = {"paper", "system", "dataset", "scale", "seed"}  # these are in the folder's path
    settings = {key: value for key, value in spec.content().items() if key not in named}
    return short_hash({"version": TRAINING, "settings": settings, "corpus": corpus, "parts": list(parts)})


class CorpusContents:
    """Content hashes of corpora, including the user's own files.

    Args:
        cache: File that caches the digests of these files.
        licensed: Folders of licensed packages by name.
    """

    def __init__(self, cache: Path, licensed: dict[str, str]):
        self.files, self.licensed = FileDigests(cache), licensed
        self.known: dict[str, str] = {}

    def of(self, dataset: AnyDataset) -> str:
        """Return the content hash of a dataset's corpus."""
        if dataset.name not in self.known:
            self.known[dataset.name] = self._hash(dataset)
            self.files.write()
        return self.known[dataset.name]

    def _hash(self, dataset: AnyDataset) -> str:
        settings = dataset.model_dump(mode="json", exclude_defaults=True, exclude=DESCRIPTIONS)
        if isinstance(text := settings.get("text"), dict):
            text.pop("sources", None)
        checksums = {name: self.known_hash(source) for name, source in sources_of(dataset).items()}
        own = self.own_files(dataset) if isinstance(dataset, LicensedPackages) else {}
        return short_hash({"version": PREPARATION, "settings": settings, "files": checksums | own})

    def known_hash(self, source: Source) -> str:
        """Return the declared checksum of a source, or the current one of the user's own file."""
        if source.path and source.sha256 and Path(source.path).is_file():
            return f"sha256:{self.files.digest(Path(source.path))}"
        return source.known_hash

    def own_files(self, dataset: Any) -> dict[str, str]:
        """Return the digests of a dataset's existing files in the folders of its licensed packages."""
        found: dict[str, str] = {}
        for package in dataset.packages.keys() & self.licensed.keys():
            names = (name for pattern in dataset.package_members(package) for name in expand_numbers(pattern))
            paths = {f"{package}/{name}": Path(self.licensed[package]) / name for name in names}
            found |= {name: self.files.digest(path) for name, path in paths.items() if path.is_file()}
        return found


class FileDigests:
    """Cached digests of files without a declared checksum; a file is hashed again when its size or time changes."""

    def __init__(self, cache: Path):
        self.cache = cache
        self.known: dict[str, tuple[int, int, str]] | None = None
        self.changed = False

    def digest(self, path: Path) -> str:
        """Return the SHA-256 of a file, as 64 hexadecimal digits."""
        if self.known is None:
            self.known = self.read()
        stat, key = path.stat(), os.path.realpath(path)
        if self.known.get(key, ())[:2] != (stat.st_size, stat.st_mtime_ns):
            self.known[key] = (stat.st_size, stat.st_mtime_ns, sha256_file(path))
            self.changed = True
        return self.known[key][2]

    def read(self) -> dict[str, tuple[int, int, str]]:
        """Read the cache; it is empty if the file is missing or damaged."""
        try:
            return TypeAdapter(dict[str, tuple[int, int, str]]).validate_python(read_json(self.cache))
        except (UserError, ValueError):
            return {}

    def write(self) -> None:
        """Write the cache if it changed and the work folder is writable."""
        if not self.changed or not self.cache.parent.is_dir():
            return
        try:
            write_json(self.cache, self.known)
        except UserError:
            return
        self.changed = False


def short_hash(content: Any) -> str:
    """Return the first digits of the SHA-256 of a JSON value."""
    return sha256_json(content)[:DIGITS]
