"""A user's own speech corpus: its dataset file and recordings of noise."""

from pathlib import Path

import numpy as np
import soundfile

from pipeline.core.schema import validate
from pipeline.data.dataset import Dataset, ManifestDataset
from pipeline.data.speech.manifest import Utterance, write_manifest

RATE = 8000


def record(**changes) -> dict:
    names = dict.fromkeys(("name", "title", "licence", "citation", "dev_set", "test_set", "domain"), "x")
    return names | {"max_characters": 40} | changes


def own(**changes) -> ManifestDataset:
    settings = {"kind": "manifest", "packages": {"mine": "speech"}, "otherwise": "y"}
    settings |= {"sample_rate": RATE, "high_hz": 3800, "max_seconds": 2, "min_seconds": 0.1} | changes
    return validate(Dataset, record(**settings), "test")


def write_noise(path: Path, seconds: float, rate: int = RATE, channels: int = 1, **settings) -> Path:
    samples = np.random.default_rng(1).normal(0, 0.1, (int(rate * seconds), channels))
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples, rate, **settings)
    return path


def write_manifests(folder: Path, **utterances: list[Utterance]) -> dict[str, Path]:
    """Write the manifest of each split, and return them; a split has one good utterance unless it is given."""
    manifests = {split: folder / f"{split}.tsv" for split in ("train", "dev", "test")}
    for split, path in manifests.items():
        good = Utterance(write_noise(folder / f"{split}.wav", 1.0), "good", "me", "x", 1.0)
        write_manifest(path, utterances.get(split, [good]))
    return manifests
