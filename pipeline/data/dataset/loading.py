"""Reading dataset files: which kinds there are, and which of them a stage is for."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from pipeline.data.dataset.base import TokenisedRecord
from pipeline.data.dataset.files import Source, complete, load_files
from pipeline.data.dataset.parallel import CorpusRecord, DownloadedDataset, GrammarDataset
from pipeline.data.dataset.speech import (
    CharacterDataset,
    OwnText,
    ReadAloudDataset,
    RecordedDataset,
    SpokenDataset,
    SpokenRecord,
    WrittenDataset,
)
from pipeline.data.dataset.treebank import Treebank, TreebankDataset, TreebankRecord
from pipeline.errors import UserError
from pipeline.schema import load_yaml, validate

AnyDataset = DownloadedDataset | GrammarDataset | Treebank | SpokenDataset | CharacterDataset | OwnText
TokenisedDataset = DownloadedDataset | GrammarDataset | Treebank
Dataset = Annotated[AnyDataset, Field(discriminator="kind")]


def load_dataset(path: Path) -> AnyDataset:
    """Read a dataset file, `<folder>/datasets/<name>.yaml`; `<folder>/files` describes the files that it names.

    Raises:
        UserError: unknown keys, bad values, an unknown name of a file, or a missing dataset file.
    """
    path = Path(path)
    return read_dataset(path, load_files(path.absolute().parent.parent / "files"))


def load_datasets(folder: Path) -> dict[str, AnyDataset]:
    """All datasets of a folder by name. Raises UserError as `load_dataset`, and when a described file is in none."""
    files = load_files(folder.parent / "files")
    datasets = {path.stem: read_dataset(path, files) for path in sorted(folder.glob("*.yaml"))}
    if unused := sorted(set(files) - {name for dataset in datasets.values() for name in sources_of(dataset)}):
        raise UserError(f"{folder.parent / 'files'}: {unused[0]}: no dataset uses it; remove it")
    return datasets


def read_dataset(path: Path, files: dict[str, Source]) -> AnyDataset:
    record = complete(load_yaml(path), files, str(path))
    if isinstance(record, dict):
        record = {"name": path.stem} | record
    return validate(Dataset, record, str(path))


def sources_of(dataset: AnyDataset) -> dict[str, Source]:
    """What a dataset fetches."""
    match dataset:
        case DownloadedDataset() | TreebankDataset() | ReadAloudDataset() | RecordedDataset() | CharacterDataset():
            return dataset.sources
    return {}


def load_parallel(path: Path) -> DownloadedDataset | GrammarDataset:
    """Raises UserError as `load_dataset`, and when the file describes no parallel text."""
    dataset = load_dataset(path)
    if not isinstance(dataset, CorpusRecord):
        raise unfit(path, dataset, "not parallel text")
    return dataset


def load_treebank(path: Path) -> Treebank:
    """Raises UserError as `load_dataset`, and when the file describes no treebank."""
    dataset = load_dataset(path)
    if not isinstance(dataset, TreebankRecord):
        raise unfit(path, dataset, "not a treebank")
    return dataset


def load_tokenised(path: Path) -> TokenisedDataset:
    """Raises UserError as `load_dataset`, and when the file describes no text in subwords or other symbols."""
    dataset = load_dataset(path)
    if not isinstance(dataset, TokenisedRecord):
        raise unfit(path, dataset, "neither parallel text nor a treebank")
    return dataset


def load_spoken(path: Path) -> SpokenDataset:
    """Raises UserError as `load_dataset`, and when the file describes no speech."""
    dataset = load_dataset(path)
    if not isinstance(dataset, SpokenRecord):
        raise unfit(path, dataset, "not speech")
    return dataset


def load_text(path: Path) -> WrittenDataset:
    """Raises UserError as `load_dataset`, and when the file describes no text in characters."""
    dataset = load_dataset(path)
    if not isinstance(dataset, WrittenDataset):
        raise unfit(path, dataset, "no text to write or to fetch")
    return dataset


def unfit(path: Path, dataset: AnyDataset, fault: str) -> UserError:
    return UserError(f"{path}: {fault}, its kind is {dataset.kind!r}; this stage is for other datasets")
