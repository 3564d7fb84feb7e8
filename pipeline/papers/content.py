"""What runs and corpora are made of, in the digits that end their folders' names; known before anything is built.

A corpus: the settings of its preparation and the checksums of what it is prepared from. A run: its settings, its
corpus, and the runs whose weights it takes. Neither the place of the work folder nor the version of the program is in
it, nor what only describes. What was built is verified against the digests in its records, which are in no name.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from pipeline.config import RunSpec
from pipeline.core.digests import sha256_file, sha256_json
from pipeline.core.errors import UserError
from pipeline.core.json_file import read_json, write_json
from pipeline.data.dataset import AnyDataset, Source, sources_of
from pipeline.data.dataset.base import LicensedPackages
from pipeline.data.fetch.packages import expanded

DIGITS = 8
PREPARATION = TRAINING = 1
"""To be raised when equal settings would be prepared or trained to other results: then all folders are other ones."""
DESCRIPTIONS = {
    *("name", "title", "licence", "citation", "stands_in_for", "dev_set", "test_set", "further_test_sets"),
    *("packages", "folder", "otherwise", "expected", "size", "sources", "gap"),
}
"""Keys of a dataset that decide nothing of what its corpus holds, and those that `corpus_content` reads otherwise."""


def run_content(spec: RunSpec, corpus: str, parts: Iterable[str]) -> str:
    """Of a run. corpus, parts: the same of its corpus, and of the runs whose weights it takes."""
    named = {"paper", "system", "dataset", "scale", "seed"}  # the folder's path says these
    settings = {key: value for key, value in spec.content().items() if key not in named}
    return digits({"version": TRAINING, "settings": settings, "corpus": corpus, "parts": list(parts)})


class CorpusContents:
    """Contents of corpora, which depend on files of the user's own, too. notes: where their digests are kept."""

    def __init__(self, notes: Path, licensed: dict[str, str]):
        self.files, self.licensed = LocalFiles(notes), licensed
        self.known: dict[str, str] = {}

    def of(self, dataset: AnyDataset) -> str:
        if dataset.name not in self.known:
            self.known[dataset.name] = self.found(dataset)
            self.files.write()
        return self.known[dataset.name]

    def found(self, dataset: AnyDataset) -> str:
        settings = dataset.model_dump(mode="json", exclude_defaults=True, exclude=DESCRIPTIONS)
        if isinstance(text := settings.get("text"), dict):
            text.pop("sources", None)
        checksums = {name: self.known_hash(source) for name, source in sources_of(dataset).items()}
        own = self.own_files(dataset) if isinstance(dataset, LicensedPackages) else {}
        return digits({"version": PREPARATION, "settings": settings, "files": checksums | own})

    def known_hash(self, source: Source) -> str:
        """As declared; of a file of one's own as it is now, so that nothing made of an older one is taken."""
        if source.path and source.sha256 and Path(source.path).is_file():
            return f"sha256:{self.files.digest(Path(source.path))}"
        return source.known_hash

    def own_files(self, dataset: Any) -> dict[str, str]:
        """Digests of a dataset's files in the folders that config.yaml names; of those that are there."""
        found: dict[str, str] = {}
        for package in dataset.packages.keys() & self.licensed.keys():
            names = (name for pattern in dataset.package_members(package) for name in expanded(pattern))
            paths = {f"{package}/{name}": Path(self.licensed[package]) / name for name in names}
            found |= {name: self.files.digest(path) for name, path in paths.items() if path.is_file()}
        return found


class LocalFiles:
    """Digests of files that nobody declared a checksum of; each is read again when its size or time changes only."""

    def __init__(self, notes: Path):
        self.notes = notes
        self.known: dict[str, tuple[int, int, str]] | None = None
        self.changed = False

    def digest(self, path: Path) -> str:
        if self.known is None:
            self.known = self.read()
        stat, key = path.stat(), os.path.realpath(path)
        if self.known.get(key, ())[:2] != (stat.st_size, stat.st_mtime_ns):
            self.known[key] = (stat.st_size, stat.st_mtime_ns, sha256_file(path))
            self.changed = True
        return self.known[key][2]

    def read(self) -> dict[str, tuple[int, int, str]]:
        """Nothing, where they are not there or are damaged: then the files are read."""
        try:
            return TypeAdapter(dict[str, tuple[int, int, str]]).validate_python(read_json(self.notes))
        except (UserError, ValueError):
            return {}

    def write(self) -> None:
        """Where the work folder may be written to."""
        if not self.changed or not self.notes.parent.is_dir():
            return
        try:
            write_json(self.notes, self.known)
        except UserError:
            return
        self.changed = False


def digits(content: Any) -> str:
    return sha256_json(content)[:DIGITS]
