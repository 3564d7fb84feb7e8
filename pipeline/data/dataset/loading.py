"""Loading of dataset files: the union of all kinds, and the kinds that a stage accepts."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from pipeline.core.errors import UserError
from pipeline.core.schema import load_yaml, validate
from pipeline.data.dataset.base import LicensedPackages
from pipeline.data.dataset.files import Source, complete, load_files
from pipeline.data.dataset.parallel import DownloadedDataset, GrammarDataset
from pipeline.data.dataset.speech import CharacterDataset, OwnText, ReadAloudDataset, RecordedDataset, SpokenDataset
from pipeline.data.dataset.treebank import Treebank, TreebankDataset

AnyDataset = DownloadedDataset | GrammarDataset | Treebank | SpokenDataset | CharacterDataset | OwnText
TokenisedDataset = DownloadedDataset | GrammarDataset | Treebank
Dataset = Annotated[AnyDataset, Field(discriminator="kind")]


def load_dataset(path: Path) -> AnyDataset:
    """Load a dataset file, `<folder>/datasets/<name>.yaml`; `<folder>/files` describes the files that it names.

    Returns:
        The record of the dataset.

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
    """Load all datasets of a folder.

    Returns:
        Valid datasets by name, and the errors of the others.

    Raises:
        UserError: No dataset uses a described file.
    """
    files = load_files(folder.parent / "files")
    datasets = Datasets()
    for path in sorted(folder.glob("*.yaml")):
        try:
            datasets[path.stem] = read_dataset(path, files)
        except UserError as error:
            datasets.faults[path.stem] = error
    unused = sorted(set(files) - {name for dataset in datasets.values() for name in sources_of(dataset)})
    if unused and not datasets.faults:
        raise UserError(f"{folder.parent / 'files'}: {unused[0]}: no dataset uses it; remove it")
    return datasets


def read_dataset(path: Path, files: dict[str, Source]) -> AnyDataset:
    """Read and validate one dataset file.

    Args:
        path: Dataset file, whose stem is the dataset's name.
        files: Files described in workflow/files, by name.

    Returns:
        The record of the dataset.
    """
    record = complete(load_yaml(path), files, str(path))
    if isinstance(record, dict):
        record = {"name": path.stem} | record
    return validate(Dataset, record, str(path))


def sources_of(dataset: AnyDataset) -> dict[str, Source]:
    """Return the files that a dataset fetches."""
    match dataset:
        case DownloadedDataset() | TreebankDataset() | ReadAloudDataset() | RecordedDataset() | CharacterDataset():
            return dataset.sources
    return {}


def may_be_passed_on(dataset: AnyDataset) -> bool:
    """Return whether anyone may redistribute all data of a dataset; licensed and own data never."""
    licensed = isinstance(dataset, LicensedPackages) and bool(dataset.packages)
    return not licensed and all(source.redistributable for source in sources_of(dataset).values())


def load_one_of(path: Path, kinds: Any, needed: str) -> Any:
    """Load a dataset of one of the `kinds`.

    Args:
        path: Dataset file.
        kinds: Accepted classes.
        needed: Description of the accepted input, for the message.

    Returns:
        The record of the dataset.

    Raises:
        UserError: The file is faulty, or its kind is another one.
    """
    dataset = load_dataset(path)
    if not isinstance(dataset, kinds):
        raise UserError(f"{path}: kind {dataset.kind!r} does not fit; this stage needs {needed}")
    return dataset
