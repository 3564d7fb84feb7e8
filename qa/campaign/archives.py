"""Small synthetic archives in the layouts that the dataset files describe: the same names, members and formats.

The content of a file follows from its name alone. So the two sides of a pair match, and so do files that several
corpora share.
"""

import gzip
import hashlib
import io
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import soundfile

from pipeline.data.dataset import AnyDataset, CharacterDataset, DownloadedDataset, RecordedDataset, TreebankDataset
from pipeline.data.dataset.parallel import Side

Members = dict[str | None, bytes]
"""Content by path in the archive; the key None holds the content of a file that is not an archive."""

LINES, TEST_LINES, LINES_OF_TEXT = 100, 12, 10_000
TREES = {"train": 40, "dev": 8, "test": 8}
RATE, SECONDS, UTTERANCES, WORDS = 16000, 1.2, 6, 6
SYLLABLES = {"en": "ta lo ri ne mu", "de": "sch ung ber ein zu", "fr": "eau oin tre lle qui"}
LABELS = "(S (NP (DT {}) (NN {})) (VP (VBZ {}) (ADVP (RB {}))))"


def members_of(dataset: AnyDataset) -> Iterator[tuple[str, Members]]:
    """Return the members that each file of a dataset needs."""
    match dataset:
        case DownloadedDataset():
            for split, parts in dataset.splits.items():
                for part in parts.parts:
                    for side, language in ((part.src, dataset.src), (part.tgt, dataset.tgt)):
                        yield side.source, {side.member: parallel(side, language, split, (dataset.src, dataset.tgt))}
        case TreebankDataset():
            for parts in dataset.splits.values():
                for part in parts.parts:
                    yield part.source, {None: trees(part.source)}
        case RecordedDataset():
            for parts in dataset.splits.values():
                for part in parts:
                    yield part.source, recordings(dataset.layout, part.members.removesuffix("/*"))
        case CharacterDataset():
            for parts in dataset.text.splits.values():
                for part in parts:
                    if part.member is None:
                        yield part.source, {None: text(part.source)}
                    elif part.layout == "tedlium":
                        yield part.source, {part.member.replace("*", "talks"): text(part.member)}


def parallel(side: Side, language: str, split: str, languages: tuple[str, str]) -> bytes:
    """Return one side of sentence pairs; line n means the same in all members of a file."""
    count = LINES if split == "train" else TEST_LINES
    name = side.member.removesuffix(".gz")
    test_set = re.search(r"news(dev|test)\d+", name)
    seed = f"{side.source} {test_set[0] if test_set else name.removesuffix(f'.{language}')}"
    if name.endswith(".xml"):
        source, target = (
            "".join(f"<seg>{line}</seg>" for line in lines(seed, count, language)) for language in languages
        )
        return f'<set><doc id="a"><src>{source}</src><ref translator="A">{target}</ref></doc></set>'.encode()
    said = lines(seed, count, language)
    if name.endswith(".sgm"):
        return "".join(f'<seg id="{n}">{line}</seg>\n' for n, line in enumerate(said)).encode()
    plain = "".join(f"{line}\n" for line in said).encode()
    return plain if name == side.member else gzip.compress(plain, mtime=0)


def lines(seed: str, count: int, language: str) -> list[str]:
    """Return sentences in one language; sentences with equal seeds mean the same."""
    rng = Random(seed)
    return [" ".join(word(rng.randrange(60), language) for _ in range(rng.randint(3, 9))) + "." for _ in range(count)]


def word(number: int, language: str) -> str:
    if language == "zh":
        return chr(0x4E00 + 7 * number)
    syllables = SYLLABLES[language].split()
    return "".join(syllables[digit] for digit in (number % 5, number // 5 % 5, number // 25))


def trees(name: str) -> bytes:
    said = lines(name, sum(TREES.values()), "en")
    bracketed = (LABELS.format(*line.removesuffix(".").split()[:3], "so") for line in said)
    return gzip.compress("".join(f"{tree}\n" for tree in bracketed).encode(), mtime=0)


def text(name: str) -> bytes:
    said = (line.removesuffix(".").upper() for line in lines(name, LINES_OF_TEXT, "en"))
    return gzip.compress("".join(f"{line}\n" for line in said).encode(), mtime=0)


def recordings(layout: str, folder: str) -> Members:
    """Return utterances of three speakers; a talk is one file, which segments divide."""
    rng, syllables = Random(folder), SYLLABLES["en"].split()
    said = [" ".join(rng.choices(syllables, k=WORDS)) for _ in range(UTTERANCES)]
    found: Members = {}
    for speaker in range(3):
        name = f"{int(hashlib.sha256(f'{folder} {speaker}'.encode()).hexdigest()[:6], 16)}"
        mine = said[2 * speaker : 2 * speaker + 2]
        if layout == "librispeech":
            chapter = f"{folder}/{name}/1"
            found[f"{chapter}/{name}-1.trans.txt"] = "".join(
                f"{name}-1-000{n} {line.upper()}\n" for n, line in enumerate(mine)
            ).encode()
            found |= {f"{chapter}/{name}-1-000{n}.flac": noise(f"{name} {n}", SECONDS, "FLAC") for n in range(2)}
        else:
            segments = "".join(
                f"{name} 1 {name} {n * SECONDS:.2f} {(n + 1) * SECONDS:.2f} <o,f0,male> {line}\n"
                for n, line in enumerate(mine)
            )
            found[f"{folder}/stm/{name}.stm"] = segments.encode()
            found[f"{folder}/sph/{name}.sph"] = noise(name, 2 * SECONDS, "NIST")
    return found


def noise(seed: str, seconds: float, kind: str) -> bytes:
    buffer, rng = io.BytesIO(), np.random.default_rng(int(hashlib.sha256(seed.encode()).hexdigest()[:8], 16))
    soundfile.write(buffer, rng.normal(0, 0.1, int(RATE * seconds)), RATE, format=kind, subtype="PCM_16")
    return buffer.getvalue()


def write_archives(datasets: list[AnyDataset], folder: Path) -> dict[str, dict[str, Any]]:
    """Write every file of some datasets where a mirror has it; return digest and size of each by its name."""
    content: dict[str, Members] = {}
    places: dict[str, str] = {}
    for dataset in datasets:
        for name, members in members_of(dataset):
            content.setdefault(name, {}).update(members)
        sources = dataset.text.sources if isinstance(dataset, CharacterDataset) else dataset.sources
        places |= {name: source.mirror or name for name, source in sources.items()}
    found = {}
    for name, members in content.items():
        packed = members[None] if None in members else tar(members, gzipped=not name.endswith(".tar"))
        path = folder / places[name]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(packed)
        found[name] = {"sha256": hashlib.sha256(packed).hexdigest(), "bytes": len(packed)}
    return found


def tar(members: Members, gzipped: bool) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(buffer.getvalue(), mtime=0) if gzipped else buffer.getvalue()
