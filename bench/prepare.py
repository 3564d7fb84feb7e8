"""Benchmark speed and memory of preparing a corpus as it grows.

    python bench/prepare.py --pairs 100000
    python bench/prepare.py --pairs 100000 1000000 3000000 --processes 2 --folder /scratch/prepare

Prints one JSON line per stage and size: pairs per second of wall-clock time and of CPU time of all processes, peak
memory (shared pages count once) and bytes written. The stages are those of the workflow, each in its own process. The
last line is the first batch of a training: it opens the corpus, cuts it into steps and builds one.

A seeded generator writes the corpus: sentences of log-normal length with 26 words on average, and 150,000 word types by
Zipf's law, with names, numbers and punctuation. Both sides are alike in length. Subwords are learnt as for WMT14:
37,000 from a sample of at most a million pairs.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

TYPES, MEAN_WORDS, LENGTH_SPREAD, SEED = 150_000, 26, 0.55, 1
BLOCK = 20_000
SAMPLE_EVERY_S = 0.1
DATASET = """\
kind: grammar
title: Synthetic
licence: none
citation: none
src: en
tgt: de
dev_set: synthetic-dev
test_set: synthetic-test
generator: {domain: film, sizes: {train: 1, dev: 1, test: 1}, seed: 1}
cleaning: {max_tokens: 80, max_ratio: 9}
tokeniser: moses
subwords: {kind: bpe, vocab_size: 37000, sample_pairs: 1000000, seed: 1}
compound_split: true
"""
FIRST_BATCH = """\
import sys
from pathlib import Path
from pipeline.config import TrainingConfig
from pipeline.data.batches.parallel_batches import ParallelSplit, ParallelBatches
training = TrainingConfig(max_steps=1, schedule="constant", lr=1, validate_every=1, checkpoint_every=1,
                          tokens_per_update=25000, micro_batch_tokens=8192, max_length=256)
batches = ParallelBatches(ParallelSplit(Path(sys.argv[1]) / "encoded", "train"), training, seed=1)
batches.micro_batches(len(batches) // 2)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[100_000])
    parser.add_argument("--processes", type=int, default=1, help="processes of the stages prepare and encode")
    parser.add_argument("--folder", type=Path, help="folder for the corpora; default: a temporary one")
    args = parser.parse_args()
    for pairs in args.pairs:
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            for report in measure(Path(folder), pairs, args.processes):
                print(json.dumps(report), flush=True)


def measure(folder: Path, pairs: int, processes: int) -> Iterator[dict]:
    """Prepare one corpus, and print each stage."""
    corpus, dataset = folder / "corpus", folder / "synthetic.yaml"
    dataset.write_text(DATASET)
    write_corpus(corpus, pairs)
    yield {"stage": "raw", "pairs": pairs, "bytes": size(corpus / "raw")}
    where = ["--dataset", str(dataset), "--corpus", str(corpus)]
    stage = [sys.executable, "-m", "pipeline"]
    parallel = ["--processes", str(processes)]
    stages = {
        "prepare": ([*stage, "prepare", *where, *parallel], "prepared"),
        "subwords": ([*stage, "subwords", *where], None),
        "encode": ([*stage, "encode", *where, *parallel], "encoded"),
        "first batch": ([sys.executable, "-c", FIRST_BATCH, str(corpus)], None),
    }
    for name, (command, written) in stages.items():
        used = processes if "--processes" in command else 1
        report = {"stage": name, "pairs": pairs, "processes": used} | watched(command, pairs)
        yield report | ({"bytes": size(corpus / written)} if written else {})
    shutil.rmtree(corpus)


def watched(command: list[str], pairs: int) -> dict:
    """Run a command; its time, and the memory of its process group."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
    peak = [0]
    sampler = threading.Thread(target=sample_memory, args=(process, peak))
    sampler.start()
    _, errors = process.communicate()
    sampler.join()
    if process.returncode:
        sys.exit(errors)
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "seconds": round(seconds, 2),
        "processor_seconds": round(used, 2),
        "pairs_per_s": round(pairs / seconds),
        "pairs_per_core_s": round(pairs / used),
        "peak_memory_gib": round(peak[0] / 2**30, 3),
    }


def sample_memory(process: subprocess.Popen, peak: list[int]) -> None:
    """Keep the largest sum over the process group in `peak[0]`, bytes."""
    while process.poll() is None:
        members = [entry for entry in os.listdir("/proc") if entry.isdecimal() and group_of(int(entry)) == process.pid]
        peak[0] = max(peak[0], sum(map(proportional_bytes, members)))
        time.sleep(SAMPLE_EVERY_S)


def group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def proportional_bytes(pid: str) -> int:
    """Memory of a process, a page that n share counted as 1/n."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().split("\n")
    except OSError:  # it has ended
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def write_corpus(corpus: Path, pairs: int) -> None:
    (corpus / "raw").mkdir(parents=True)
    for number, (split, count) in enumerate((("train", pairs), ("dev", 3000), ("test", 3000))):
        for side, language in enumerate(("en", "de")):
            with open(corpus / f"raw/{split}.{language}", "w", encoding="utf-8") as file:
                words = word_list(np.random.default_rng([SEED, side]))
                # The same lengths on both sides, within a few words.
                lengths = np.random.default_rng([SEED, number])
                text = np.random.default_rng([SEED, number, side])
                for begin in range(0, count, BLOCK):
                    file.writelines(sentences(min(BLOCK, count - begin), words, lengths, text))


def word_list(rng: np.random.Generator) -> np.ndarray:
    """Words of one to five syllables, the frequent ones short; some are names, numbers, or end in punctuation."""
    syllables = [
        "".join(pair)
        for pair in np.stack([rng.choice(list("bcdfghklmnprstvwz"), 400), rng.choice(list("aeiouäöü"), 400)], 1)
    ]
    counts = 1 + (np.log10(np.arange(1, TYPES + 1)) / 1.7 + rng.random(TYPES)).astype(int)
    words = []
    for rank, count in enumerate(counts):
        word = "".join(rng.choice(syllables, count)) + str(rng.choice(["", "n", "s", "t", "ng"]))
        kind = rng.random()
        if rank > 50 and kind < 0.08:
            word = word.capitalize()
        elif rank > 50 and kind < 0.1:
            word = f"{rng.integers(1, 10_000):,}"
        elif rank > 50 and kind < 0.16:
            word += str(rng.choice([",", ",", ";", "-" + word, "'s"]))
        words.append(word)
    return np.array(words, dtype=object)


def sentences(count: int, words: np.ndarray, lengths: np.random.Generator, text: np.random.Generator) -> Iterator[str]:
    drawn = lengths.lognormal(np.log(MEAN_WORDS) - LENGTH_SPREAD**2 / 2, LENGTH_SPREAD, count)
    sizes = np.maximum(1, np.round(drawn * text.normal(1, 0.12, count))).astype(int)
    # Zipf's law by inversion: log-uniform ranks.
    ranks = np.exp(text.random(int(sizes.sum())) * np.log(TYPES)).astype(int) - 1
    place = 0
    for length in sizes:
        yield " ".join(words[ranks[place : place + length]]).capitalize() + ".\n"
        place += length


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


if __name__ == "__main__":
    main()
