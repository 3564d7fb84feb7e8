"""Dataset files are closed records, and every shipped one is valid."""

import re
from pathlib import Path

import pytest
import yaml
from pydantic import TypeAdapter, ValidationError
from toy_corpus import download_record, one_part

from pipeline.core.errors import UserError
from pipeline.data.dataset import (
    Dataset,
    Documents,
    DownloadedDataset,
    LicensedPackages,
    is_own,
    load_dataset,
    load_datasets,
    load_files,
    sources_of,
)

SHIPPED = sorted((Path(__file__).parents[2] / "workflow/datasets").glob("*.yaml"))
FILES = SHIPPED[0].parents[1] / "files"
OWN = {path.stem for path in SHIPPED if path.stem.startswith("own-")}
"""Datasets of the user's own."""
UNPUBLISHED = {"tedlium3", "tedlium3-text", "librispeech-text", "librispeech-tedlium3-text"}
"""Datasets whose number of utterances or sentences that can be spelt is not published."""
SOURCE = {"urls": ["http://localhost/a.gz"], "sha256": "0" * 64}
SIDE = {"source": "a.gz"}
OUTSIDE = dict.fromkeys(("train", "dev", "test"), one_part({"source": "../a.gz"}, {"source": "../a.gz"}))


OF_ANCHORS = {
    *(f"multi30k-{name}" for name in ("en-de-lowercased", "en-de-all-tests", "en-fr-all-tests", "en-cs-all-tests")),
    *("an4-complete", "an4-official", "an4-without-j", "an4-without-m", "an4-without-s"),
    *(f"fsdd-without-{speaker}" for speaker in ("lucas", "nicolas", "theo", "yweweler")),
}
"""Datasets with published results, which replace no other."""


def downloaded(**changes) -> dict:
    split = one_part(SIDE, SIDE)
    content = {"sources": {"a.gz": SOURCE}, "splits": {"train": split, "dev": split, "test": split}} | changes
    return {key: value for key, value in download_record(**content).items() if key != "name"}


def save(folder: Path, content: dict) -> Path:
    path = folder / "toy.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_datasets_are_valid_and_assert_their_test_sets(path):
    dataset = load_dataset(path)
    assert dataset.name == path.stem and not is_own(dataset), "text of others, also of packages on the user's disk"
    assert {"dev", "test"} <= set(dataset.expected) or path.stem in UNPUBLISHED | OWN
    assert dataset.stands_in_for or dataset.name.startswith(("wmt14", "wsj", "nist")) or path.stem in OF_ANCHORS
    assert dataset.size or path.stem in OWN, "the stage `plan` needs an expected size"
    if isinstance(dataset, LicensedPackages) and dataset.otherwise:
        assert path.with_name(f"{dataset.otherwise}.yaml") in SHIPPED
    if isinstance(dataset, DownloadedDataset):
        assert all(source.bytes or source.md5 for source in dataset.sources.values())


def test_each_source_file_is_described_once_with_its_terms():
    files = load_files(FILES)
    datasets = load_datasets(FILES.parent / "datasets")
    assert {name for dataset in datasets.values() for name in sources_of(dataset)} == set(files)
    for dataset in datasets.values():
        for name, source in sources_of(dataset).items():
            assert source == files[name] and source.licence in dataset.licence
    assert not any(re.search(r"^ *(sha256|md5): |https?://.*\.t?gz", path.read_text(), re.M) for path in SHIPPED)


SIZE = {"pairs": [1, 1, 1], "src_subwords": 1, "tgt_subwords": 1, "raw_bytes": 1}
FURTHER = {"splits": dict.fromkeys(("train", "dev", "test", "test2"), one_part(SIDE, SIDE))}
TRANSLATED_TWICE = {"splits": dict.fromkeys(("train", "dev", "test"), one_part(SIDE, SIDE, further_references=[SIDE]))}
PACKAGED = {"splits": dict.fromkeys(("train", "dev", "test"), one_part({"package": "P", "member": "a"}, SIDE))}
FAULTS = {
    "unknown key": ({"cleaning": {"max_tokens": 5, "max_ratio": 2, "min_tokens": 1}}, "min_tokens"),
    "ratio below one": ({"cleaning": {"max_tokens": 5, "max_ratio": 0.5}}, "max_ratio.*0.5"),
    "no checksum": ({"sources": {"a.gz": {"urls": ["http://localhost"]}}}, "a.gz.*one of sha256 and md5"),
    "two checksums": ({"sources": {"a.gz": SOURCE | {"md5": "0" * 32}}}, "a.gz.*one of sha256 and md5"),
    "short checksum": ({"sources": {"a.gz": SOURCE | {"sha256": "abc"}}}, "sha256.*abc"),
    "unused source": ({"sources": {"a.gz": SOURCE, "c.gz": SOURCE}}, "no split uses source c.gz"),
    "unknown source": ({"sources": {"b.gz": SOURCE}}, "splits name a.gz"),
    "path for a name": ({"sources": {"../a.gz": SOURCE}, "splits": OUTSIDE}, "plain file name"),
    "missing split": ({"splits": {"train": one_part(SIDE, SIDE)}}, "split dev, test is missing"),
    "two translations in train": (TRANSLATED_TWICE, "train: training pairs have one translation"),
    "unknown kind": ({"kind": "downlaod"}, "downlaod"),
    "no code of a language": ({"src": "English"}, "src.*English"),
    "test set without a name": (FURTHER, "test2 has no name under further_test_sets"),
    "name without a test set": ({"further_test_sets": ["b"]}, "split test2 is missing"),
    "size of too few splits": (
        FURTHER | {"further_test_sets": ["b"], "size": SIZE},
        "size.pairs needs a number for each of train, dev, test, test2",
    ),
    "unknown package": (PACKAGED, "splits name P, but it is not under packages"),
    "unused package": ({"packages": {"P": "x"}, "otherwise": "y"}, "no split uses package P"),
    "package without otherwise": (PACKAGED | {"packages": {"P": "x"}}, "set `otherwise` if, and only if, there are"),
}


ORIGIN = {"licence": "none", "redistributable": True, "files": {"a.gz": SOURCE}}


def save_project(folder: Path, record: dict, **origins: dict) -> Path:
    """Write a dataset file beside the files of origins, and return its path."""
    for name in ("files", "datasets"):
        (folder / name).mkdir()
    for name, origin in origins.items():
        (folder / f"files/{name}.yaml").write_text(yaml.safe_dump(origin))
    return save(folder / "datasets", record)


def test_a_file_is_found_by_its_name_and_brings_its_licence(tmp_path):
    content = {key: value for key, value in downloaded().items() if key not in ("sources", "licence")}
    dataset = load_dataset(save_project(tmp_path, content, origin=ORIGIN))
    assert dataset.sources["a.gz"].known_hash == f"sha256:{'0' * 64}" and dataset.sources["a.gz"].redistributable
    assert dataset.licence == "none" and list(dataset.sources) == ["a.gz"]


def test_data_are_the_users_own_if_every_file_has_a_path(tmp_path):
    own, other = {"path": "/data/a", "sha256": "0" * 64}, SOURCE
    split = one_part({"source": "a"}, {"source": "b"})
    for sources, answer in (({"a": own, "b": own}, True), ({"a": own, "b": other}, False)):
        content = downloaded(sources=sources, splits=dict.fromkeys(("train", "dev", "test"), split))
        assert is_own(load_dataset(save(tmp_path, content))) == answer


def test_source_described_in_a_dataset_is_not_looked_up(tmp_path):
    own = SOURCE | {"sha256": "1" * 64}
    dataset = load_dataset(save_project(tmp_path, downloaded(sources={"a.gz": own}), origin=ORIGIN))
    assert dataset.sources["a.gz"].sha256 == "1" * 64


def test_file_described_twice_or_unused_is_an_error(tmp_path):
    path = save_project(tmp_path, downloaded(), first=ORIGIN, second=ORIGIN)
    with pytest.raises(UserError, match=r"second\.yaml: files: 'a.gz': described in two files"):
        load_dataset(path)
    (tmp_path / "files/second.yaml").write_text(yaml.safe_dump(ORIGIN | {"files": {"b.gz": SOURCE}}))
    with pytest.raises(UserError, match=r"files: b\.gz: no dataset uses it"):
        load_datasets(tmp_path / "datasets")


@pytest.mark.parametrize("key", ["licence", "redistributable", "files", "more"])
def test_the_description_of_an_origin_is_closed(tmp_path, key):
    origin = ORIGIN | {"more": 1} if key == "more" else {name: ORIGIN[name] for name in ORIGIN if name != key}
    with pytest.raises(UserError, match=rf"first\.yaml: {key}: (missing|unknown) key"):
        load_dataset(save_project(tmp_path, downloaded(), first=origin))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_message_with_file_and_key(tmp_path, fault):
    changes, message = FAULTS[fault]
    path = save(tmp_path, downloaded(**changes))
    with pytest.raises(UserError, match=message) as raised:
        load_dataset(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("name", ["../a.tree", "/a.tree", "..", ""])
def test_documents_must_not_leave_their_folder(name):
    with pytest.raises(ValidationError, match="plain file name"):
        Documents(folder="https://host/", names=["b.tree", name])


def test_every_key_of_the_schema_is_described():
    schema = TypeAdapter(Dataset).json_schema()
    for name, kind in schema["$defs"].items():
        for key, field in kind["properties"].items():
            assert field.get("description"), f"{name}.{key}"
