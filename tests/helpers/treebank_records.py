"""Small treebanks for the tests of their stages."""

import gzip
import hashlib
from pathlib import Path

from pipeline.core.schema import validate
from pipeline.data.dataset import Dataset, Treebank


def treebank_record(**changes) -> dict:
    """Return the keys that all treebank files share; `changes` replace or add keys."""
    return {
        "name": "toy-trees",
        "title": "Toy",
        "licence": "none",
        "citation": "none",
        "src": "en",
        "dev_set": "toy-dev",
        "test_set": "toy-test",
        "subwords": {"kind": "bpe", "vocab_size": 60, "sample_pairs": 1000, "seed": 1},
        "tgt_subwords": {"kind": "symbols"},
    } | changes


def make_treebank(**changes) -> Treebank:
    return validate(Dataset, treebank_record(**changes), "toy-trees.yaml")


def grammar_treebank(extra: dict | None = None) -> Treebank:
    generator = {"domain": "film", "sizes": {"train": 4, "dev": 1, "test": 1}, "seed": 1}
    return make_treebank(kind="grammar-treebank", generator=generator, extra=extra)


def write_gz(path: Path, trees: list[str]) -> dict:
    """Write a mirror's file of trees, and describe it as a source whose documents do not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(f"{tree}\n" for tree in trees).encode(), mtime=0))
    return {
        "mirror": path.name,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "bytes": path.stat().st_size,
        "documents": {"folder": "http://127.0.0.1:9/", "names": ["a.tree"]},
    }


def sha256_lines(trees: list[str]) -> str:
    return hashlib.sha256("".join(f"{tree}\n" for tree in trees).encode()).hexdigest()
