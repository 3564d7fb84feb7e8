"""Sentences that `reprise report` finds in several splits."""

import random
import tracemalloc
from types import SimpleNamespace

import pytest

from reprise.cli.report import overlaps


@pytest.fixture
def dataset():
    return SimpleNamespace(form="sentences", languages=("en", "de"), split_names=("train", "dev", "test"))


def write(folder, **splits):
    for split, lines in splits.items():
        (folder / f"{split}.en").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def test_overlaps_are_counted_for_each_pair_of_splits(dataset, tmp_path):
    write(
        tmp_path, train=["A dog.", "Two  cats.", "no"], dev=["a dog.", "A DOG.", "own"], test=["own", "two cats.", "x"]
    )
    assert list(overlaps(dataset, tmp_path)) == [
        "dev: 2 of 3 sentences are in train too",
        "test: 1 of 3 sentences is in train too",
        "test: 1 of 3 sentences is in dev too",
    ]


def test_overlaps_with_training_text_need_little_memory(dataset, tmp_path):
    draw = random.Random(1)
    write(tmp_path, train=[draw.random() for _ in range(20_000)], dev=["a"], test=["b"])
    tracemalloc.start()
    assert not list(overlaps(dataset, tmp_path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < (tmp_path / "train.en").stat().st_size
