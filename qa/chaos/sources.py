"""Downloaded datasets from a tiny mirror in the work folder: text, a treebank and recordings."""

import gzip
import hashlib
import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import yaml

MIRROR, RATE, TREES, SENTENCES = "work/mirror", 8000, 12, 40
WORDS = ("a", "dog", "sees", "the", "cat", "and", "old", "houses", "near", "green", "rivers", "while", "nobody")


def add_fetched(folder: Path) -> list[list[str]]:
    """Write dataset files and the mirror into a copied project; return the stages that download."""
    (folder / MIRROR).mkdir(parents=True)
    records = {"download": pairs(folder), "collect-trees": treebank(folder), "collect-recordings": recordings(folder)}
    commands = []
    for stage, record in records.items():
        path = f"workflow/datasets/chaos-{stage}.yaml"
        (folder / path).write_text(yaml.safe_dump(record, sort_keys=False))
        places = ["--downloads", "work/downloads", "--corpus", f"work/corpora/chaos-{stage}", "--mirror", MIRROR]
        commands.append([stage, "--dataset", path, *places])
    return commands


def common(kind: str) -> dict[str, Any]:
    names = {"title": "Tiny", "licence": "Part of this project", "citation": "None", "stands_in_for": "a test"}
    return {"kind": kind} | names | {"dev_set": "tiny-dev", "test_set": "tiny-test"}


def add(folder: Path, name: str, content: bytes) -> dict[str, Any]:
    """Add a file to the mirror, and return its source."""
    (folder / MIRROR / name).write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    return {"urls": [f"http://127.0.0.1:9/{name}"], "sha256": digest, "bytes": len(content)}


def sentences(count: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=rng.integers(3, 9))) for _ in range(count)]


def pairs(folder: Path) -> dict[str, Any]:
    sources, splits = {}, {}
    for split in ("train", "dev", "test"):
        text = sentences(SENTENCES, seed=len(split))
        for side, lines in (("en", text), ("de", [line.upper() for line in text])):
            content = gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)
            sources[f"{split}.{side}.gz"] = add(folder, f"{split}.{side}.gz", content)
        splits[split] = {"parts": [{side: {"source": f"{split}.{name}.gz"} for side, name in SIDES.items()}]}
    settings = {"cleaning": {"max_tokens": 80, "max_ratio": 9}, "tokeniser": "moses", "compound_split": False}
    subwords = {"kind": "bpe", "vocab_size": 60, "sample_pairs": 1000, "seed": 1}
    return (
        common("download")
        | {"src": "en", "tgt": "de", "splits": splits, "sources": sources}
        | settings
        | {"subwords": subwords}
    )


SIDES = {"src": "en", "tgt": "de"}


def treebank(folder: Path) -> dict[str, Any]:
    trees = [
        f"(S (NP (DT the) (NN dog)) (VP (VBZ {line.split()[0]}) (ADVP (RB {line.split()[1]}))))"
        for line in sentences(3 * TREES, seed=1)
    ]
    source = add(folder, "tiny.ptb.gz", gzip.compress("".join(f"{tree}\n" for tree in trees).encode(), mtime=0))
    splits = {
        split: {"parts": [{"source": "tiny.ptb.gz", "first": 1 + number * TREES, "trees": TREES}]}
        for number, split in enumerate(("train", "dev", "test"))
    }
    subwords = {"kind": "bpe", "vocab_size": 60, "sample_pairs": 1000, "seed": 1}
    return common("treebank") | {
        "src": "en",
        "splits": splits,
        "sources": {"tiny.ptb.gz": source},
        "subwords": subwords,
        "tgt_subwords": {"kind": "symbols"},
    }


def recordings(folder: Path) -> dict[str, Any]:
    buffer, rng, rows = io.BytesIO(), np.random.default_rng(1), ["path\tspeaker\ttranscript"]
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for split in ("train", "dev", "test"):
            for number in range(6):
                wave = io.BytesIO()
                soundfile.write(wave, rng.normal(0, 0.1, RATE // 2), RATE, format="FLAC")
                entry = tarfile.TarInfo(f"tiny/{split}/{number}.flac")
                entry.size = len(wave.getvalue())
                archive.addfile(entry, io.BytesIO(wave.getvalue()))
                rows.append(f"{entry.name}\treader{number % 2}\t{WORDS[number]}")
    table = "".join(f"{row}\n" for row in rows).encode()
    sources = {"tiny.tar.gz": add(folder, "tiny.tar.gz", buffer.getvalue()), "tiny.tsv": add(folder, "tiny.tsv", table)}
    splits = {
        split: [{"source": "tiny.tar.gz", "table": "tiny.tsv", "members": f"tiny/{split}/*"}]
        for split in ("train", "dev", "test")
    }
    limits = {"sample_rate": RATE, "high_hz": 3800, "max_seconds": 9, "max_characters": 99}
    return common("recordings") | {"domain": "tiny", "layout": "table", "splits": splits, "sources": sources} | limits
