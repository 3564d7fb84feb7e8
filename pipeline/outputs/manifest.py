"""Manifests of outputs: unchanged outputs are kept, failures are recorded, and the other outputs are still made.

While an output is missing, the manifest is named `outputs.json.part`, which no rule declares, so that Snakemake does
not delete it when the job fails. It becomes `outputs.json` when everything is there.
"""

import contextlib
import logging
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from pipeline.core.digests import recording_digests, sha256_file
from pipeline.core.errors import UserError
from pipeline.core.files import note_path
from pipeline.core.records.outputs import Manifest, Output
from pipeline.core.retries import retry_stage

log = logging.getLogger(__name__)


def part_of(path: Path) -> Path:
    """Return the name of a manifest while an output of it is missing."""
    return path.with_name(f"{path.name}.part")


def entries_of(path: Path) -> dict[str, Output]:
    """Return the entries of a manifest, complete or not; the newest version of an entry counts."""
    found: dict[str, Output] = {}
    for manifest in filter(None, (Manifest.read_if_valid(version) for version in (path, part_of(path)))):
        found |= manifest.entries
    return found


def reopen(path: Path) -> Path:
    """Turn a complete manifest into an incomplete one, and return its new path.

    Its job then runs again, compares each entry with its files, and makes missing or damaged ones.

    Returns:
        The path of the partial manifest.
    """
    Manifest(entries=entries_of(path)).write(part_of(path))
    path.unlink()
    note_path(path).unlink(missing_ok=True)
    return part_of(path)


class ManifestWriter:
    """Manifest of a run's outputs while they are made.

    Attributes:
        path: Path of the complete manifest.
        entries: Entries by the path of an output in the run's folder.
    """

    def __init__(self, run_folder: Path, path: Path):
        self.run_folder, self.path = run_folder, path
        self.entries = entries_of(path)

    def lacks(self, keys: Mapping[str, str]) -> list[str]:
        """Return the outputs that are missing, have other inputs or settings, or whose files have changed."""
        return [name for name, key in keys.items() if not self.has(name, key)]

    def has(self, name: str, key: str) -> bool:
        """Return whether an output was made from these inputs and its files are unchanged.

        Args:
            name: Path of the output in the run's folder.
            key: Digest of its inputs and settings.
        """
        entry = self.entries.get(name)
        if entry is None or entry.error or entry.key != key:
            return False
        files = {self.run_folder / file: digest for file, digest in entry.files.items()}
        return all(file.exists() and sha256_file(file) == digest for file, digest in files.items())

    def make(self, keys: Mapping[str, str], make: Callable[[str], Iterable[Path]]) -> None:
        """Make the given outputs one by one; a failure is recorded, and the others are still made.

        Args:
            keys: Digest of inputs and settings by output.
            make: Makes one output and returns its files.

        Raises:
            UserError: One or more outputs failed; the message names the first cause.
        """
        failed: dict[str, str] = {}
        for name, key in keys.items():
            try:
                self.entries[name] = Output(key=key, files=self._files(name, make))
            except UserError as error:
                failed[name] = str(error)
            except Exception as error:  # an unforeseen fault of one output must not cost the others
                log.error("%s", traceback.format_exc().rstrip())
                failed[name] = f"{type(error).__name__}: {error}"
            if name in failed:
                log.error("%s: %s", name, failed[name])
                self.entries[name] = Output(key=key, error=failed[name])
            Manifest(entries=self.entries).write(part_of(self.path))
        if failed:
            name, cause = next(iter(failed.items()))
            raise UserError(f"{self.run_folder}: {len(failed)} of {len(keys)} outputs failed; {name}: {cause}")

    def _files(self, name: str, make: Callable[[str], Iterable[Path]]) -> dict[str, str]:
        paths: list[Path] = []

        def once() -> None:
            with recording_digests():
                paths[:] = make(name)

        retry_stage(once)
        return {str(path.relative_to(self.run_folder)): sha256_file(path) for path in paths}

    def finish(self, names: Iterable[str]) -> None:
        """Write the complete manifest of the given outputs and remove the incomplete one."""
        Manifest(entries={name: self.entries[name] for name in names}).write(self.path)
        with contextlib.suppress(OSError):  # a leftover has the same entries
            part_of(self.path).unlink(missing_ok=True)
            note_path(part_of(self.path)).unlink(missing_ok=True)
