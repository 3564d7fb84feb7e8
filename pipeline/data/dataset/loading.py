"""Reading dataset files: which kinds there are, and which of them a stage is for."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from pipeline.data.dataset.base import DatasetRecord
from pipeline.data.dataset.parallel import CorpusRecord, DownloadedDataset, GrammarDataset
from pipeline.data.dataset.speech import CharacterDataset, OwnText, SpokenDataset, SpokenRecord, WrittenDataset
from pipeline.data.dataset.treebank import Treebank, TreebankRecord
from pipeline.errors import UserError
from pipeline.schema import load_yaml, validate

AnyDataset = DownloadedDataset | GrammarDataset | Treebank | SpokenDataset | CharacterDataset | OwnText
Dataset = Annotated[AnyDataset, Field(discriminator="kind")]


def load_dataset(path: Path) -> AnyDataset:
    """Read a dataset file. Raises UserError on unknown keys, bad values or a missing file."""
    path = Path(path)
    record = load_yaml(path)
    if isinstance(record, dict):
        record = {"name": path.stem} | record
    return validate(Dataset, record, str(path))


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
