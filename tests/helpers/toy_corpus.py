"""Small corpora for the tests of the data stages."""

from pathlib import Path

import numpy as np

from pipeline.core.schema import validate
from pipeline.data.dataset import Dataset, GrammarDataset
from pipeline.data.sequence_store import write_tokens

WORDS = ["the", "a", "man", "dog", "sees", "house", "with", "two", "café", "naïve", "don't", "3.5", "&", "well-known"]


def record(**changes) -> dict:
    """Return the content of a dataset file; `changes` replace its keys."""
    return {
        "kind": "grammar",
        **{"name": "toy", "title": "Toy", "licence": "none", "citation": "none"},
        **{"src": "en", "tgt": "de", "dev_set": "toy-dev", "test_set": "toy-test"},
        "generator": {"domain": "film", "sizes": {"train": 1, "dev": 1, "test": 1}, "seed": 1},
        "cleaning": {"max_tokens": 20, "max_ratio": 3},
        **{"tokeniser": "moses", "compound_split": False},
        "subwords": {"kind": "bpe", "vocab_size": 60, "sample_pairs": 10000, "seed": 1},
    } | changes


def download_record(**changes) -> dict:
    """Return the same for text that is fetched."""
    return {key: value for key, value in record(**{"kind": "download"} | changes).items() if key != "generator"}


def one_part(src: dict, tgt: dict, **lines: int) -> dict:
    """Return a split of one part: its two sides, and which of their lines it takes."""
    return {"parts": [{"src": src, "tgt": tgt} | lines]}


def make_dataset(**changes) -> GrammarDataset:
    return validate(Dataset, record(**changes), "toy.yaml")


def random_lines(count: int, seed: int, longest: int = 12) -> list[str]:
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(WORDS, generator.integers(1, longest + 1))) for _ in range(count)]


def write_raw(corpus: Path, split: str, src: list[str | bytes], tgt: list[str | bytes]) -> None:
    (corpus / "raw").mkdir(parents=True, exist_ok=True)
    for language, lines in (("en", src), ("de", tgt)):
        content = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
        (corpus / f"raw/{split}.{language}").write_bytes(content)


def write_toy_raw(corpus: Path, pairs: int = 300) -> None:
    """Write random parallel text; both sides of a pair have similar lengths."""
    for split, count in (("train", pairs), ("dev", 20), ("test", 20)):
        lines = random_lines(count, 1)
        write_raw(corpus, split, lines, [line.upper() for line in lines])


def write_encoded(folder: Path, src_lengths, tgt_lengths, seed: int = 0, vocab_size: int = 500) -> None:
    """Write an encoded train split of random ids; the first id of a pair identifies it."""
    generator = np.random.default_rng(seed)
    for side, lengths in (("src", src_lengths), ("tgt", tgt_lengths)):
        with write_tokens(folder / f"train.{side}", vocab_size) as store:
            store.append(generator.integers(4, vocab_size, int(np.sum(lengths))), lengths)
