"""Dataset files are closed records, and every shipped one is valid."""

from pathlib import Path

import pytest
import yaml
from pydantic import TypeAdapter
from toy_corpus import make_dataset, record

from pipeline.data.dataset import Dataset, DownloadedDataset, LicensedPackages, load_dataset
from pipeline.errors import UserError

SHIPPED = sorted((Path(__file__).parents[2] / "workflow/datasets").glob("*.yaml"))
OWN = {path.stem for path in SHIPPED if path.stem.startswith("own-")}
"""Of the user's own."""
UNPUBLISHED = {"tedlium3", "tedlium3-text", "librispeech-text", "librispeech-tedlium3-text"}
"""How many utterances or sentences are left of them, once those that can't be spelt are left out, nobody published."""
SOURCE = {"urls": ["http://localhost/a.gz"], "sha256": "0" * 64}


def downloaded(**changes) -> dict:
    side = {"source": "a.gz"}
    split = {"parts": [{"src": side, "tgt": side}]}
    base = record(kind="download", sources={"a.gz": SOURCE}, splits={"train": split, "dev": split, "test": split})
    del base["generator"], base["name"]
    return base | changes


def save(folder: Path, content: dict) -> Path:
    path = folder / "toy.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_datasets_are_valid_and_assert_their_test_sets(path):
    dataset = load_dataset(path)
    assert dataset.name == path.stem
    assert {"dev", "test"} <= set(dataset.expected) or path.stem in UNPUBLISHED | OWN
    assert dataset.stands_in_for or dataset.name.startswith(("wmt14", "wsj", "nist"))
    assert dataset.size or path.stem in OWN, "the stage `plan` needs an expected size"
    if isinstance(dataset, LicensedPackages) and dataset.otherwise:
        assert path.with_name(f"{dataset.otherwise}.yaml") in SHIPPED
    if isinstance(dataset, DownloadedDataset):
        assert all(source.bytes or source.md5 for source in dataset.sources.values())


def test_shipped_datasets_share_a_file_only_if_it_is_the_same_file():
    known = {}
    for path in SHIPPED:
        dataset = load_dataset(path)
        for name, source in getattr(dataset, "sources", {}).items():
            assert known.setdefault(name, source) == source, name


def test_a_downloaded_dataset_loads(tmp_path):
    dataset = load_dataset(save(tmp_path, downloaded()))
    assert isinstance(dataset, DownloadedDataset) and dataset.name == "toy" and dataset.languages == ("en", "de")


SIDE = {"source": "b.gz"}
FAULTS = {
    "unknown key": ({"cleaning": {"max_tokens": 5, "max_ratio": 2, "min_tokens": 1}}, "min_tokens"),
    "ratio below one": ({"cleaning": {"max_tokens": 5, "max_ratio": 0.5}}, "max_ratio.*0.5"),
    "no checksum": ({"sources": {"a.gz": {"urls": ["http://localhost"]}}}, "a.gz.*one of sha256 and md5"),
    "two checksums": ({"sources": {"a.gz": SOURCE | {"md5": "0" * 32}}}, "a.gz.*one of sha256 and md5"),
    "short checksum": ({"sources": {"a.gz": SOURCE | {"sha256": "abc"}}}, "sha256.*abc"),
    "unused source": ({"sources": {"a.gz": SOURCE, "c.gz": SOURCE}}, "no split uses source c.gz"),
    "unknown source": ({"sources": {"b.gz": SOURCE}}, "splits name a.gz"),
    "path for a name": ({"sources": {"../a.gz": SOURCE}}, "source"),
    "missing split": ({"splits": {"train": {"parts": [{"src": SIDE, "tgt": SIDE}]}}}, "split dev, test is missing"),
    "unknown kind": ({"kind": "downlaod"}, "downlaod"),
    "unknown language": ({"src": "xx"}, "src.*xx"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_message_with_file_and_key(tmp_path, fault):
    changes, message = FAULTS[fault]
    path = save(tmp_path, downloaded(**changes))
    with pytest.raises(UserError, match=message) as raised:
        load_dataset(path)
    assert str(path) in str(raised.value)


def test_a_source_must_not_leave_its_folder(tmp_path):
    side = {"source": "../a.gz"}
    split = {"parts": [{"src": side, "tgt": side}]}
    content = downloaded(sources={"../a.gz": SOURCE}, splits={"train": split, "dev": split, "test": split})
    with pytest.raises(UserError, match="plain file name"):
        load_dataset(save(tmp_path, content))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"nowhere\.yaml: no such file"):
        load_dataset(tmp_path / "nowhere.yaml")


def test_the_toy_dataset_of_these_tests_is_valid():
    assert make_dataset(lowercase=True).lowercase


def test_every_key_of_the_schema_is_described():
    schema = TypeAdapter(Dataset).json_schema()
    for name, kind in schema["$defs"].items():
        for key, field in kind["properties"].items():
            assert field.get("description"), f"{name}.{key}"
