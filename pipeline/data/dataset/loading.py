"""Load dataset files, and the files to fetch that they name.

`workflow/files/<origin>.yaml` describes each file to fetch once, and the splits of `workflow/datasets/<name>.yaml` name
it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from pipeline.core.errors import UserError, one_line, shown
from pipeline.core.schema import Closed, load_yaml_as, nearest, require_name, validate
from pipeline.core.yaml_file import load_yaml
from pipeline.data.dataset.base import LicensedPackages, Source, Sources
from pipeline.data.dataset.parallel import DownloadedDataset, GrammarDataset
from pipeline.data.dataset.speech import (
    CharacterDataset,
    OwnFolder,
    OwnText,
    ReadAloudDataset,
    RecordedDataset,
    SpokenDataset,
)
from pipeline.data.dataset.treebank import Treebank, TreebankDataset

AnyDataset = DownloadedDataset | GrammarDataset | Treebank | SpokenDataset | CharacterDataset | OwnText
TokenisedDataset = DownloadedDataset | GrammarDataset | Treebank
Dataset = Annotated[AnyDataset, Field(discriminator="kind")]


class Origin(Closed):
    """Files of one origin, under one licence: `workflow/files/<origin>.yaml`."""

    licence: str = Field(description="Terms of use of the files, with their name")
    redistributable: bool = Field(
        description="The licence lets anyone redistribute the files for any purpose; false if it does not say"
    )
    files: Sources = Field(min_length=1, description="The files, by name")


def load_dataset(path: Path) -> AnyDataset:
    """Return the record of a file `<folder>/datasets/<name>.yaml`; `<folder>/files` has the files that it names.

    Raises:
        UserError: The file is missing, a key or file name is unknown, or a value is bad.
    """
    path = Path(path)
    return read_dataset(path, load_files(path.absolute().parent.parent / "files"))


class Datasets(dict[str, AnyDataset]):
    """Datasets by name; asking for one with a faulty file raises its UserError."""

    def __init__(self):
        self.faults: dict[str, UserError] = {}

    def __missing__(self, name: str) -> AnyDataset:
        raise self.faults.get(name) or KeyError(name)


def load_datasets(folder: Path) -> Datasets:
    """Return the valid datasets of a folder by name, and the errors of the others.

    Raises:
        UserError: No dataset uses a described file.
    """
    files = load_files(folder.parent / "files")
    datasets = Datasets()
    for path in sorted(folder.glob("*.yaml")):
        try:
            require_name(path.stem, path)
            datasets[path.stem] = read_dataset(path, files)
        except UserError as error:
            datasets.faults[path.stem] = error
    unused = sorted(set(files) - {name for dataset in datasets.values() for name in sources_of(dataset)})
    if unused and not datasets.faults:
        raise UserError(f"{folder.parent / 'files'}: {unused[0]}: no dataset uses it; remove it")
    return datasets


def read_dataset(path: Path, files: dict[str, Source]) -> AnyDataset:
    """Return the valid record of the dataset file `path`, which names some of the described `files`."""
    record = with_named_files(load_yaml(path), files, str(path))
    if isinstance(record, dict):
        record = {"name": path.stem} | record
    return validate(Dataset, record, str(path))


def load_files(folder: Path) -> dict[str, Source]:
    """Return every file that datasets can name, by name, with its licence.

    Raises:
        UserError: A key is unknown, a value is bad, or two origins have files of one name.
    """
    files: dict[str, Source] = {}
    for path in sorted(folder.glob("*.yaml")):
        origin: Origin = load_yaml_as(Origin, path)
        terms = {"licence": origin.licence, "redistributable": origin.redistributable}
        if twice := sorted(set(origin.files) & set(files)):
            raise UserError(f"{path}: files: {shown(twice[0])}: described in two files of {folder}; remove one")
        files |= {name: source.model_copy(update=terms) for name, source in origin.files.items()}
    return files


def with_named_files(record: Any, files: dict[str, Source], where: str) -> Any:
    """Return a dataset's `record` with the `files` that its splits name but it does not describe, and their licences.

    A malformed record stays as it is; `where` is its file.

    Raises:
        UserError: A file is described nowhere; the message has the nearest spelling.
    """
    holder = record.get("text", record) if isinstance(record, dict) else None
    if not isinstance(holder, dict) or not isinstance(own := holder.get("sources", {}), dict):
        return record  # `validate` reports the error
    needed = [name for name in dict.fromkeys(file_names(holder.get("splits"))) if name not in own]
    for name in needed:
        if name not in files:
            fault = f"splits name {one_line(name, 80)}, but it is neither under sources nor in workflow/files"
            raise UserError(f"{where}: {fault}{nearest(name, files)}")
    if not needed:
        return record
    sources = {"sources": own | {name: files[name] for name in needed}}
    licences = dict.fromkeys(files[name].licence for name in needed)
    terms = {"licence": "; ".join(filter(None, licences))}
    return terms | record | ({"text": holder | sources} if "text" in record else sources)


def file_names(splits: Any) -> Iterator[str]:
    """Yield every file name in the splits of a record."""
    if isinstance(splits, dict):
        yield from (splits[key] for key in ("source", "table") if isinstance(splits.get(key), str))
    values = splits.values() if isinstance(splits, dict) else splits if isinstance(splits, list) else ()
    for part in values:
        yield from file_names(part)


def sources_of(dataset: AnyDataset) -> dict[str, Source]:
    """Return the files that a dataset fetches."""
    match dataset:
        case DownloadedDataset() | TreebankDataset() | ReadAloudDataset() | RecordedDataset() | CharacterDataset():
            return dataset.sources
    return {}


def is_redistributable(dataset: AnyDataset) -> bool:
    """Return whether anyone may redistribute all data of a dataset; licensed and own data never."""
    licensed = isinstance(dataset, LicensedPackages) and bool(dataset.packages)
    return not licensed and all(source.redistributable for source in sources_of(dataset).values())


def is_own(dataset: AnyDataset) -> bool:
    """Return whether all data of a dataset are files that its description finds on the user's disk."""
    if isinstance(dataset, OwnFolder):
        return dataset.folder is not None
    sources = sources_of(dataset).values()
    return bool(sources) and all(source.path for source in sources)


def load_one_of(path: Path, kinds: Any, needed: str) -> Any:
    """Return the record at `path` if it is of one of the `kinds`, which are what is `needed`.

    Raises:
        UserError: The file is faulty, or its kind is another one.
    """
    dataset = load_dataset(path)
    if not isinstance(dataset, kinds):
        raise UserError(f"{path}: kind {dataset.kind!r} does not fit; this stage needs {needed}")
    return dataset
