"""Further test sets, further references and parts of files, from raw files to the encoded corpus."""

import gzip
import hashlib

import pytest
from toy_corpus import download_record, one_part

from pipeline.core.errors import UserError
from pipeline.core.schema import validate
from pipeline.data.dataset import Dataset
from pipeline.data.fetch.download import fetch_all
from pipeline.data.fetch.raw_text import write_raw_splits
from pipeline.data.text.encode import encode
from pipeline.data.text.prepare import prepare
from pipeline.data.text.subwords import learn_vocabularies

LINES = [f"line {number} of a file ." for number in range(40)]
XML = """<dataset id="x"><doc id="d1"><src lang="en"><p><seg id="1">One &amp; all</seg><seg id="2">Two
 lines</seg></p></src><ref lang="de" translator="A"><p><seg id="1">Eins A</seg><seg id="2">Zwei A</seg></p></ref>
<ref lang="de" translator="B"><p><seg id="1">Eins B</seg><seg id="2">Zwei B</seg></p></ref></doc></dataset>
"""
WORD = {"kind": "word", "vocab_size": 12}
SIDE = {"source": "all.gz"}


def translated(translator):
    return {"source": "x.xml", "translator": translator}


def downloaded(folder):
    """Return a dataset of one file and one XML test set, which are in a folder."""
    files = {"all.gz": gzip.compress(("\n".join(LINES) + "\n").encode(), mtime=0), "x.xml": XML.encode()}
    for name, content in files.items():
        (folder / name).write_bytes(content)
    sources = {name: {"sha256": hashlib.sha256(content).hexdigest()} for name, content in files.items()}
    test = one_part({"source": "x.xml"}, translated("A"), further_references=[translated("B")])
    splits = {"train": one_part(SIDE, SIDE), "dev": one_part(SIDE, SIDE), "test": test}
    splits["test2"] = one_part(SIDE, SIDE, first=3, every=5, lines=8)
    content = {"sources": sources, "splits": splits, "further_test_sets": ["second"], "subwords": WORD}
    return validate(Dataset, download_record(**content), "toy.yaml")


def write_raw(dataset, folder):
    write_raw_splits(dataset, fetch_all(dataset, folder / "downloads", str(folder)), folder)


def test_splits_and_references_pass_through_all_stages(tmp_path):
    dataset = downloaded(tmp_path)
    write_raw(dataset, tmp_path)
    assert (tmp_path / "raw/test.en").read_text() == "One & all\nTwo lines\n"
    assert (tmp_path / "raw/test.de").read_text() == "Eins A\nZwei A\n"
    assert (tmp_path / "raw/test.de2").read_text() == "Eins B\nZwei B\n"
    assert (tmp_path / "raw/test2.de").read_text().split("\n")[:-1] == LINES[2::5]
    assert dataset.references("test") == ["de", "de2"] and dataset.references("test2") == ["de"]
    assert list(prepare(dataset, tmp_path, 1).splits) == ["train", "dev", "test", "test2"]
    assert (tmp_path / "prepared/test.tok.de2").read_text() == "Eins B\nZwei B\n"
    learn_vocabularies(dataset, tmp_path)
    assert encode(dataset, tmp_path, 1).splits["test2"].pairs == 8
    assert [dataset.name_of_split(split) for split in ("dev", "test", "test2")] == ["toy-dev", "toy-test", "second"]


def test_a_reference_without_a_line_is_refused(tmp_path):
    write_raw(dataset := downloaded(tmp_path), tmp_path)
    (tmp_path / "raw/test.de2").write_text("Eins B\n \n")
    with pytest.raises(UserError, match=r"test\.de2: line 2: empty; correct it, as references must be complete"):
        prepare(dataset, tmp_path, 1)


def test_a_file_that_only_a_mirror_has_is_named(tmp_path):
    with pytest.raises(UserError, match=r"all\.gz: it has no public address; set `mirror:`"):
        fetch_all(downloaded(tmp_path), tmp_path / "downloads", None)
