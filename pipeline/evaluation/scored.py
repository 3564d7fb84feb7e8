"""What a score file says of that which was scored, whatever it is."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.core.records.scores import Scored
from pipeline.core.sha256 import sha256_file
from pipeline.data.dataset import AnyDataset, SplitName
from pipeline.data.text.checked_lines import name_of_split, training_behind


def scoring_arguments(parser: argparse.ArgumentParser, dataset: str) -> None:
    """--dataset, which is `dataset` in words, --split and --out."""
    parser.add_argument("--dataset", type=Path, required=True, help=f"dataset file {dataset}")
    parser.add_argument("--split", default="test", help="train, dev or a test split")
    parser.add_argument("--out", type=Path, required=True, help="a .json file")


def scored(
    dataset: AnyDataset, split: SplitName, lines: int, references: str, read: Sequence[Path], **others: Any
) -> Scored:
    """references: their digest; read: the files that were read, first what a system wrote; others: as in `Scored`."""
    return Scored(
        dataset=dataset.name,
        split=split,
        test_set=name_of_split(dataset, split),
        lines=lines,
        references=references,
        inputs={str(path): sha256_file(path) for path in read},
        training=training_behind(read[0]),
        **others,
    )
