"""Damaged files of every format: each parser reads them or refuses them in a few lines, within seconds.

`REPRISE_FUZZ=1 python -m pytest tests/data/test_parser_fuzz.py` tries each parser for a minute with new damage;
REPRISE_FUZZ_SEED repeats that of a printed seed.
"""

import gzip
import io
import os
import random
import time
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import packed_model
import pytest
import soundfile
import torch
from made_archives import entry, hard_link, pack, symbolic_link, tar
from made_records import parallel_corpus

from pipeline.core.digests import digest_of, read_note, write_note
from pipeline.core.errors import UserError, printable_lines
from pipeline.core.provenance import ROOT
from pipeline.core.records.corpus import AnyCorpus
from pipeline.core.records.record import read_as
from pipeline.core.yaml_file import load_yaml
from pipeline.data.dataset import TextPart, load_dataset
from pipeline.data.dataset.parallel import Side
from pipeline.data.fetch.archives import members
from pipeline.data.fetch.collect_trees import read_trees
from pipeline.data.fetch.raw_text import files_listed, read_side
from pipeline.data.sequence_store import TokenStore, write_tokens
from pipeline.data.speech.audio import seconds_of
from pipeline.data.speech.collect_text import part_content, table_rows
from pipeline.data.speech.manifest import read_manifest
from pipeline.data.text.text_files import lines_of
from pipeline.data.text.vocabulary import Subwords
from pipeline.data.trees.linearisation import linearise
from pipeline.data.trees.trees import clean, parse_tree
from pipeline.training.tensor_file import DamagedFileError, read_tensor_file, write_tensor_file
from qa.chaos.hostile.files import altered
from reprise.model_input import features, read_sound
from reprise.new_data.recordings import read_table
from reprise.new_data.text import read_columns

FRESH = "REPRISE_FUZZ" in os.environ
SECONDS = 60.0 if FRESH else 0.1
SEED = int(os.environ.get("REPRISE_FUZZ_SEED", random.SystemRandom().randrange(1 << 32) if FRESH else 49))
LONGEST_S = 5.0


def tar_of(kind: str) -> bytes:
    contents = (("d/one", b"one\n" * 300), ("d/" + "é" * 150, b"two"), ("empty", b""))
    entries = (entry(name, content, {"comment": "x" * 40}) for name, content in contents)
    return tar(*entries, hard_link("hard", "d/one"), symbolic_link("soft", "d/one"), kind=kind)


def zip_of() -> bytes:
    buffer = io.BytesIO(pack([("d/one", b"one\n" * 300)], "zip", {"soft": "d/one"}))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("d\\two", b"two")  # not compressed
    return buffer.getvalue()


def sound_of(kind: str, subtype: str) -> bytes:
    buffer = io.BytesIO()
    samples = np.random.default_rng(1).normal(0, 0.1, (4000, 2))
    soundfile.write(buffer, samples, 8000, format=kind, subtype=subtype)
    return buffer.getvalue()


def written(name: str, write: Callable[[Path], object]) -> Callable[[Path], bytes]:
    """A function that returns the bytes of a file that the project writes, in a folder."""

    def content_in(folder: Path) -> bytes:
        folder.mkdir(exist_ok=True)
        write(folder / name)
        return (folder / name).read_bytes()

    return content_in


def hear(path: Path) -> None:
    samples, rate = read_sound(path)
    features(path.name, samples, rate, 16_000, 7600.0)


def parse_trees(path: Path) -> None:
    for number, line in enumerate(read_trees([path])):
        linearise(clean(parse_tree(line, f"line {number}")))


def read_members(path: Path) -> None:
    for _, _, content in members(path, lambda name: True):
        content.read(1 << 20)


def noted(path: Path) -> None:
    (path.parent / ".digests").mkdir(exist_ok=True)
    (path.parent / ".digests/file").write_bytes(path.read_bytes())
    (path.parent / "file").write_bytes(b"content")
    found = read_note(path.parent / "file")
    assert found is None or len(found.digest) == 64


def recordings(path: Path) -> None:
    soundfile.write(path.parent / "a.wav", np.zeros(1600), 16_000)
    read_table(path, "own")


def tokens_in(path: Path) -> None:
    """The offsets of a store of tokens, beside its tokens."""
    (path.parent / "s.tokens").write_bytes(bytes(16))
    store = TokenStore(path.parent / "s")
    for index in range(min(len(store), 50)):
        store[index]
    store.lengths()


def read_subwords(path: Path) -> None:
    found = Subwords(path)
    found.decode(found.encode(["abcd efgh", "x"]))


def note_bytes(folder: Path) -> bytes:
    folder.mkdir(exist_ok=True)
    (folder / "x").write_bytes(b"content")
    write_note(folder / "x")
    assert digest_of(folder / "x") == read_note(folder / "x").digest
    return (folder / ".digests/x").read_bytes()


def write_offsets(path: Path) -> None:
    with write_tokens(path.with_suffix(""), 60) as tokens:
        for length in (3, 0, 5):
            tokens.append(np.arange(length))


TENSORS = {"a": torch.arange(12.0).reshape(3, 4), "b": torch.ones(2, dtype=torch.int64)}
tensor_bytes = written("a.safetensors", lambda path: write_tensor_file(path, TENSORS, {"key": "0" * 64}))
subword_bytes = written("subwords.model", lambda path: packed_model.write_subwords(path.parent, 60))


STM_PART = TextPart(source="a", layout="stm")
STM = b";; a comment\ntalk 1 speaker 0.0 1.0 <o,f0,male> word(2) {noise}\ntalk 1 s 1.0 2.0 <F0_M> it 's <sil>\n"
MANIFEST = b"audio\ttext\tspeaker\tdomain\tseconds\tstart\na.wav\tWORD\tx\tnews\t1.5\t0.25\n"
TABLE = b"path\tspeaker\ttranscript\na.flac\tx\tWORD\n"
SHEET = '\ufeffen\tde\r\n"He said ""no""."\tEr\r\n"two\nlines"\t"x"\r\n'.encode()
SGM = b'<srcset><doc docid="a"><seg id="1">A &amp; b</seg>\n<SEG id=2> c\nd </SEG></doc></srcset>\n'
XML = (
    b'<?xml version="1.0" encoding="utf-8"?><!DOCTYPE x [<!ENTITY e "ent">]><x><doc id="d"><src><seg id="1">a &e;</seg>'
    b'</src><ref translator="A"><seg id="1">c d</seg></ref></doc></x>'
)
PENN = b"( (S (NP-SBJ (PRP We)) (VP (VBP agree) (NP (-NONE- *T*))) (. .)) )\n(TOP (NP (NN x)\n (NN y)))\n"

FORMATS: dict[str, tuple[str, Callable[[Path], bytes], Callable[[Path], object]]] = {
    "sgm": ("a.sgm", lambda _: SGM * 20, lambda path: [*read_side(Side(source=path.name), path)]),
    "xml": ("a.xml", lambda _: XML, lambda path: [*read_side(Side(source=path.name, translator="A"), path)]),
    "tsv": ("a.tsv", lambda _: SHEET * 9, lambda path: [*read_columns(path)]),
    "table": (
        "a.tsv",
        lambda _: TABLE * 9,
        lambda path: [*table_rows(lines_of(path, "write it"), ("path",), str(path))],
    ),
    "recordings": ("own.tsv", lambda _: b"audio\ttext\tspeaker\n" + b"a.wav\tword\tx\n" * 3, recordings),
    "manifest": ("a.tsv", lambda _: MANIFEST, lambda path: [*read_manifest(path)]),
    "stm": ("a.stm", lambda _: STM * 9, lambda path: [*part_content(STM_PART, path, path.parent)]),
    "gzip": ("a.txt.gz", lambda _: gzip.compress(STM * 50), lambda path: [*read_side(Side(source=path.name), path)]),
    "trees": ("a.mrg", lambda _: PENN * 9, parse_trees),
    "wav": ("a.wav", lambda _: sound_of("WAV", "PCM_16"), hear),
    "extensible": ("a.wav", lambda _: sound_of("WAVEX", "FLOAT"), hear),
    "mu-law": ("a.wav", lambda _: sound_of("WAV", "ULAW"), hear),
    "flac": ("a.flac", lambda _: sound_of("FLAC", "PCM_24"), lambda path: (hear(path), seconds_of(path))),
    "ogg": ("a.ogg", lambda _: sound_of("OGG", "VORBIS"), hear),
    "tar": ("a.tar", lambda _: tar_of("tar"), read_members),
    "tar.gz": ("a.tgz", lambda _: tar_of("gz"), read_members),
    "tar.xz": ("a.txz", lambda _: tar_of("xz"), read_members),
    "zip": ("a.zip", lambda _: zip_of(), read_members),
    "yaml": ("a.yaml", lambda _: (ROOT / "workflow/datasets/an4.yaml").read_bytes(), load_yaml),
    "dataset": ("a.yaml", lambda _: (ROOT / "workflow/datasets/grammar-smoke-en-de.yaml").read_bytes(), load_dataset),
    "json": ("corpus.json", written("x", parallel_corpus(60).write), lambda path: read_as(AnyCorpus, path)),
    "raw.done": ("raw.done", lambda _: b'{"format":1,"files":["raw/train.en"]}\n', files_listed),
    "note": ("note", note_bytes, noted),
    "tensors": ("a.safetensors", tensor_bytes, read_tensor_file),
    "subwords": ("subwords.model", subword_bytes, read_subwords),
    "tokens": ("s.offsets", written("s.offsets", write_offsets), tokens_in),
}
"""Name of the file, its content before the damage, and the parser."""


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_file_is_read_or_refused_in_a_few_lines(name, tmp_path):
    file, content_of, read = FORMATS[name]
    content, rng = content_of(tmp_path / "good"), random.Random(f"{SEED} {name}")
    (tmp_path / "bad").mkdir()
    path, until, counts = tmp_path / "bad" / file, time.monotonic() + SECONDS, {"read": 0, "refused": 0}
    path.write_bytes(content)
    read(path)
    print(f"REPRISE_FUZZ_SEED={SEED}")  # pytest shows it with a failure
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of zipfile, about names that stand twice
        while time.monotonic() < until:
            path.write_bytes(altered(content, rng))
            began, end = time.process_time(), "read"
            try:
                read(path)
            except (UserError, DamagedFileError) as error:
                end = "refused"
                assert str(error).count("\n") <= 12, error
                assert printable_lines(str(error)).count("\n") == str(error).count("\n")
            counts[end] += 1
            assert time.process_time() - began < LONGEST_S, f"case {sum(counts.values())} takes too long"
    print(f"{name}: {counts}")
