"""Licensed packages: folders of the user that hold data which can't be fetched."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pipeline.core.command_line import Argument
from pipeline.core.errors import UserError, count_of, first_of, shown
from pipeline.data.dataset import DownloadedDataset, ManifestDataset, OwnText, SplitName, TreebankDataset

NUMBERS = re.compile(r"\{(\d+)\.\.(\d+)\}")
MISSING_SHOWN = 5
MOST_FILES = 100_000


Licensed = DownloadedDataset | TreebankDataset | ManifestDataset | OwnText
Packages = Annotated[tuple[str, ...], Argument(metavar="NAME=FOLDER", repeated=True)]
"""Option `--package`: folders of licensed packages."""


def package_folders(dataset: Licensed, settings: Iterable[str]) -> dict[str, Path]:
    """Return the folder of each package of a `dataset` from `settings`, NAME=FOLDER.

    Raises:
        UserError: A package that the dataset needs is missing.
    """
    folders = {name: Path(folder) for name, _, folder in (setting.partition("=") for setting in settings)}
    for name, holds in dataset.packages.items():
        if name not in folders:
            raise UserError(
                f"{dataset.name}: needs {name} ({holds}), which is licensed; name its folder in config.yaml as "
                f"`licensed: {{{name}: FOLDER}}`"
            )
    return folders


def existing_files(package: str, folder: Path, names: Iterable[str]) -> list[Path]:
    """Return the files of a `package` in a `folder`, given `names` or patterns, after checking that each exists.

    Raises:
        UserError: The folder or files are missing; the message counts and names them.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; correct `licensed: {package}` in config.yaml")
    paths = [folder / name for pattern in names for name in expand_numbers(pattern)]
    if missing := [str(path) for path in paths if not path.is_file()]:
        raise UserError(
            f"{package}: {len(missing)} of {count_of(len(paths), 'file')} missing: {first_of(missing, MISSING_SHOWN)}; "
            f"correct `licensed: {package}` in config.yaml, or complete the folder"
        )
    return paths


def own_files(dataset: ManifestDataset | OwnText, settings: Iterable[str]) -> dict[SplitName, Path]:
    """Return the file of each split of the user's own `dataset`; `settings` are those of `package_folders`.

    Raises:
        UserError: A file is missing.
    """
    folder = package_folders(dataset, settings)[dataset.package]
    paths = existing_files(dataset.package, folder, dataset.package_members(dataset.package))
    return dict(zip(dataset.split_names, paths, strict=True))


def expand_numbers(pattern: str) -> list[str]:
    """Return the names that a pattern stands for: three for `wsj_{0200..0202}.mrg`, with numbers as wide as the first.

    Raises:
        UserError: It stands for too many files, or for none.
    """
    if not (found := NUMBERS.search(pattern)):
        return [pattern]
    first, last = found.groups()
    if len(first) > 9 or len(last) > 9 or int(last) - int(first) >= MOST_FILES:
        raise UserError(f"{shown(pattern)}: matches more than {MOST_FILES:,} files; correct it in the dataset file")
    if int(last) < int(first):
        raise UserError(
            f"{shown(pattern)}: matches no file, as {first} is above {last}; correct it in the dataset file"
        )
    head, tail = pattern[: found.start()], pattern[found.end() :]
    return [f"{head}{number:0{len(first)}}{tail}" for number in range(int(first), int(last) + 1)]
