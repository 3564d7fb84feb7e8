"""Benchmark speech synthesis, feature extraction and batching on one core, relative to the length of the speech.

    python bench/features.py
    python bench/features.py --utterances 400

Prints one JSON line per measurement: seconds of speech, CPU seconds of this process, and their ratio, i.e. how many
times faster than real time one core is. `clock_s` is wall-clock time. `speak` synthesises and writes FLAC. `features`
reads FLAC, spells the transcript and computes log-mel features, at the sampling rate of each corpus. `batches` builds
training batches of 64 utterances and adds noise to two fifths of them.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import soundfile

from pipeline.config import TrainingConfig
from pipeline.core.schema import validate
from pipeline.data.batches.speech_batches import SpeechBatches, SpeechSplit
from pipeline.data.dataset import Dataset, ReaderPool
from pipeline.data.speech.collect_text import grammar_lines
from pipeline.data.speech.encode_text import Sentence
from pipeline.data.speech.features import compute_features
from pipeline.data.speech.frontend import features_of
from pipeline.data.speech.manifest import Utterance, write_manifest
from pipeline.data.speech.speak import Task, read_part, reader_of

SECONDS, SEED = 10.0, 1
RATES = {8000: 3800.0, 16000: 7600.0}
VOICES = ["gmw/en-US", "gmw/en-US+m3", "gmw/en-US+f2", "gmw/en"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--utterances", type=int, default=200)
    count = parser.parse_args().utterances
    with tempfile.TemporaryDirectory() as folder:
        spoken = measure_speaking(Path(folder), count)
        measure_features(spoken, 22050, 7600.0)
        for rate, high_hz in RATES.items():
            measure_features(noises(Path(folder), count // 4, rate), rate, high_hz)
        measure_batches(Path(folder), spoken)


def measure_speaking(folder: Path, count: int) -> list[Utterance]:
    pool = ReaderPool(voices=VOICES, words_per_minute=(180, 230), pitch=(35, 65), seed=SEED)
    text = {"kind": "grammar", "domains": ["film"], "sizes": {"train": count, "dev": 1, "test": 1}, "seed": SEED}
    lines = [line for split, line in grammar_lines(dataset(22050, 7600.0, text=text).text, "sizes") if split == "train"]
    tasks = [
        Task(folder / f"{number}.flac", Sentence(line, "a"), reader_of(pool, "train", number))
        for number, line in enumerate(lines)
    ]
    return timed("speak", 22050, lambda: read_part(tasks, "film"))


def measure_features(utterances: list[Utterance], rate: int, high_hz: float) -> None:
    limits = dataset(rate, high_hz)
    timed("features", rate, lambda: [heard for heard, _ in features_of(utterances, limits, [1.0])])


def measure_batches(folder: Path, utterances: list[Utterance]) -> None:
    manifests = {split: folder / f"{split}.tsv" for split in ("train", "dev", "test")}
    parts = {"train": utterances[2:], "dev": utterances[:1], "test": utterances[1:2]}
    for split, path in manifests.items():
        write_manifest(path, parts[split])
    compute_features(dataset(22050, 7600.0), manifests, folder, processes=1)
    training = TrainingConfig(
        **{"max_steps": 1, "schedule": "constant", "lr": 1, "validate_every": 1, "checkpoint_every": 1},
        **{"sentences_per_update": 64, "micro_batch_frames": 1_000_000, "max_frames": 10_000, "max_length": 1000},
        noise_probability=0.4,
    )
    data = SpeechBatches(SpeechSplit(folder / "encoded", "train"), training, SEED, None)
    timed("batches", 22050, lambda: epoch_of(data, parts["train"]))


def epoch_of(data: SpeechBatches, utterances: list[Utterance]) -> list[Utterance]:
    """Put the batches of one epoch together, which holds all utterances."""
    for step in range(len(data)):
        data.micro_batches(step)
    return utterances


def dataset(rate: int, high_hz: float, **changes):
    """A record of the kind that has no more than is needed here."""
    names = dict.fromkeys(("name", "title", "licence", "citation", "dev_set", "test_set", "domain"), "bench")
    limits = {"high_hz": high_hz, "max_seconds": 60, "max_characters": 1000}
    if changes:
        return validate(Dataset, names | {"kind": "characters", "max_characters": 1000} | changes, "bench")
    own = {"kind": "manifest", "packages": {"bench": "speech"}, "otherwise": "none", "sample_rate": rate}
    return validate(Dataset, names | own | limits, "bench")


def noises(folder: Path, count: int, rate: int) -> list[Utterance]:
    """Files of noise, which FLAC packs worse than speech."""
    rng = np.random.default_rng(SEED)
    utterances = []
    for number in range(count):
        path = folder / f"{rate}-{number}.flac"
        soundfile.write(path, rng.normal(0, 0.1, int(rate * SECONDS)), rate)
        utterances.append(Utterance(path, "a", "noise", "bench", SECONDS))
    return utterances


def timed(stage: str, rate: int, work: Callable[[], list[Utterance]]) -> list[Utterance]:
    """Do the work, and say how long its utterances are and how long it took."""
    clock, cpu = time.perf_counter(), time.process_time()
    utterances = work()
    clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
    seconds = sum(utterance.seconds for utterance in utterances)
    facts = {"stage": stage, "sample_rate": rate, "utterances": len(utterances), "speech_s": round(seconds, 1)}
    times = {"cpu_s": round(cpu, 3), "clock_s": round(clock, 3), "times_real_time": round(seconds / cpu)}
    print(json.dumps(facts | times), flush=True)
    return utterances


if __name__ == "__main__":
    main()
