"""Reading dataset files: which kinds there are, and which of them a stage is for."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from pipeline.data.dataset.base import DatasetRecord
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
    return of_kind(load_dataset(path), CorpusRecord, f"{path}: not parallel text")


def load_treebank(path: Path) -> Treebank:
    """Raises UserError as `load_dataset`, and when the file describes no treebank."""
    return of_kind(load_dataset(path), TreebankRecord, f"{path}: not a treebank")


def load_spoken(path: Path) -> SpokenDataset:
    """Raises UserError as `load_dataset`, and when the file describes no speech."""
    return of_kind(load_dataset(path), SpokenRecord, f"{path}: not speech")


def load_text(path: Path) -> WrittenDataset:
    """Raises UserError as `load_dataset`, and when the file describes no text in characters."""
    return of_kind(load_dataset(path), WrittenDataset, f"{path}: no text to write or to fetch")


def of_kind(dataset: DatasetRecord, kind: type[DatasetRecord], fault: str) -> DatasetRecord:
    if not isinstance(dataset, kind):
        raise UserError(f"{fault}, its kind is {dataset.kind!r}; this stage is for other datasets")
    return dataset
