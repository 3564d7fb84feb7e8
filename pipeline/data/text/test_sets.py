"""What a split of a dataset has to be, so that no score is taken on another set."""

from pathlib import Path

from pipeline.core.errors import UserError
from pipeline.core.records.preparation import PreparedPairs
from pipeline.core.sha256 import require_digest
from pipeline.data.dataset import CorpusRecord, DatasetRecord, SplitName, TreebankRecord


def name_of_split(dataset: DatasetRecord, split: SplitName) -> str:
    """As it stands beside every score."""
    return dataset.dev_set if split == "dev" else dataset.test_sets.get(split, f"{dataset.name} {split}")


def check_references(dataset: CorpusRecord, split: SplitName, prepared: Path) -> int:
    """The number of lines the split has to have.

    Raises:
        UserError: the raw references, in raw/ beside the folder `prepared`, are not those of the dataset file.
    """
    expected = dataset.expected.get(split)
    if expected is None:
        return PreparedPairs.read(prepared / "report.json").splits[split].kept
    path = prepared.parent / "raw" / f"{split}.{dataset.tgt}"
    require_digest(path, expected.tgt_sha256, "this is not the test set, prepare it again")
    return expected.lines


def check_pairs(dataset: CorpusRecord | TreebankRecord, split: SplitName, pairs: int, where: str) -> None:
    """Raises UserError unless the encoded split `where` has as many pairs as the dataset file says."""
    expected = dataset.expected.get(split)
    if split != "train" and expected is not None and pairs != expected.lines:
        raise UserError(f"{where} has {pairs} pairs, but {dataset.name} {split} has {expected.lines}; prepare it again")
