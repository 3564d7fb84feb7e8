"""An encoded corpus of random symbols, to be copied."""

from pathlib import Path

import numpy as np
from made_records import parallel_corpus

from pipeline.data.sequence_store import write_tokens
from pipeline.data.text.subwords import train

SYMBOLS = [chr(ord("a") + number) for number in range(20)]
VOCAB_SIZE = 4 + len(SYMBOLS)


def write_copy_corpus(folder: Path, **pairs: int) -> Path:
    """Write a vocabulary and splits of so many pairs, each of 3 to 8 symbols; return the `encoded` folder."""
    encoded = folder / "encoded"
    encoded.mkdir(parents=True)
    (folder / "subwords.model").write_bytes(train("word", iter([" ".join(SYMBOLS)] * 50), VOCAB_SIZE, "copy"))
    rng = np.random.default_rng()
    for split, count in pairs.items():
        sentences = [rng.integers(4, VOCAB_SIZE, rng.integers(3, 9)) for _ in range(count)]
        for side in ("src", "tgt"):
            with write_tokens(encoded / f"{split}.{side}", VOCAB_SIZE) as store:
                store.append(np.concatenate(sentences), np.array([*map(len, sentences)]))
    parallel_corpus(VOCAB_SIZE, digest=str(rng.integers(1 << 60))).write(encoded / "corpus.json")
    return encoded
