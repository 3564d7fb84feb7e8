"""Measure time and memory of the first batch of a training as the corpus grows.

    python bench/first_batch.py --pairs 3000000 36000000

Prints one JSON line per size: CPU seconds of the imports, of cutting the corpus into steps and of building one step in
the middle, and peak memory. Lengths are log-normal with 28 subwords on average, alike on both sides; all ids are zero.
The corpus has just been written, as after `encode`, so reads come from the page cache. 36 million pairs need 5 GB of
disk.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

MEAN_SUBWORDS, LENGTH_SPREAD, RATIO_SPREAD, LONGEST, SEED = 28, 0.55, 0.1, 120, 1
MEASURED = """\
import json, resource, sys, time
from pathlib import Path
from pipeline.config import TrainingConfig
from pipeline.data.batches.parallel_batches import ParallelSplit, ParallelBatches
seconds = [time.process_time()]
training = TrainingConfig(max_steps=1, schedule="constant", lr=1, validate_every=1, checkpoint_every=1,
                          tokens_per_update=25000, micro_batch_tokens=8192, max_length=256)
batches = ParallelBatches(ParallelSplit(Path(sys.argv[1]), "train"), training, seed=1)
seconds.append(time.process_time())
batches.micro_batches(len(batches) // 2)
seconds.append(time.process_time())
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps({"imports_s": round(seconds[0], 2), "cut_s": round(seconds[1] - seconds[0], 2),
                  "update_s": round(seconds[2] - seconds[1], 2), "peak_memory_gib": round(peak, 2)}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[3_000_000])
    parser.add_argument("--folder", type=Path, help="folder for the corpora; default: a temporary one")
    args = parser.parse_args()
    for pairs in args.pairs:
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            write_lengths(Path(folder), pairs)
            found = subprocess.run([sys.executable, "-c", MEASURED, folder], check=True, capture_output=True, text=True)
            print(json.dumps({"pairs": pairs} | json.loads(found.stdout)), flush=True)


def write_lengths(folder: Path, pairs: int) -> None:
    rng = np.random.default_rng(SEED)
    common = rng.normal(0, LENGTH_SPREAD, pairs)
    for side in ("src", "tgt"):
        drawn = np.exp(common + rng.normal(0, RATIO_SPREAD, pairs) - LENGTH_SPREAD**2 / 2) * MEAN_SUBWORDS
        lengths = np.clip(np.round(drawn), 1, LONGEST).astype("<i8")
        ends = np.concatenate((np.zeros(1, "<i8"), np.cumsum(lengths)))
        ends.tofile(folder / f"train.{side}.offsets")
        np.zeros(int(ends[-1]), "<u2").tofile(folder / f"train.{side}.tokens")


if __name__ == "__main__":
    main()
