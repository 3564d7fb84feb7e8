"""Compare losses in bfloat16 and float32: train a run in both precisions, with several seeds.

    python bench/precision.py work/demo/runs/attention/base/grammar-en-de/seed1-*
    python bench/precision.py --steps 100 --seeds 1 -- RUN …
    python bench/precision.py --of libraries -- RUN …    # float32 matmuls by MKL and by oneDNN instead

bfloat16 is computed in bfloat16 here, even where trainings replace it by float32 because that is faster.

RUN is the folder of a run, of which only run.yaml is read; its corpus must exist. Prints one JSON line per system:

- the final loss on the development set for each precision and seed, in nats per target symbol;
- the difference between the mean losses of both precisions;
- the mean distance of a loss from the mean of its precision, i.e. the run-to-run variation;
- the largest difference between the training losses at any validation;
- the CPU seconds of a step.

With the same seed, both precisions have the same initial weights, data and dropout masks. On a busy machine, start it
with `chrt -i 0`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from pipeline.analysis.training_curves import loss_curve, with_training_losses
from pipeline.core.disk import cache_folder
from pipeline.core.records.training import TrainedRun, TrainingCost
from pipeline.training.matmul_backend import TORCH_DEFAULT, MatmulBackend, cache_path, choose_backend

Way = tuple[str, MatmulBackend | None]
"""A precision, and what multiplies float32; None is what was found to be the fastest here."""
PAIRS: dict[str, dict[str, Way]] = {
    "precision": {"fp32": ("fp32", None), "bf16": ("bf16", None)},
    "libraries": {"mkl": ("fp32", TORCH_DEFAULT), "onednn": ("fp32", MatmulBackend(products="onednn"))},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--of", choices=PAIRS, default="precision", help="what to compare")
    args = parser.parse_args()
    for run in args.runs:
        print(json.dumps(compare(run, args.steps, args.seeds, PAIRS[args.of])), flush=True)


def compare(run: Path, steps: int, seeds: list[int], ways: dict[str, Way]) -> dict:
    spec = yaml.safe_load((run / "run.yaml").read_text())
    with tempfile.TemporaryDirectory() as folder:
        trained = {
            name: [train(Path(folder, name, str(seed)), run, spec, steps, seed, way) for seed in seeds]
            for name, way in ways.items()
        }
        ends = {
            name: [TrainedRun.read(folder / "done.json").dev.nll_per_token for folder in own]
            for name, own in trained.items()
        }
        curves = {
            name: [with_training_losses(loss_curve(folder), folder).train for folder in own]
            for name, own in trained.items()
        }
        costs = {
            name: [TrainingCost.read(folder / "cost.json").starts[-1] for folder in own]
            for name, own in trained.items()
        }
    first, second = (ends[name] for name in ways)
    gaps = [abs(a - b).max() for a, b in zip(*(curves[name] for name in ways), strict=True)]
    return {
        "system": f"{spec['paper']}/{spec['system']}",
        "steps": steps,
        "seeds": seeds,
        **{f"dev_{name}": [round(value, 4) for value in own] for name, own in ends.items()},
        "means_apart": round(abs(statistics.mean(first) - statistics.mean(second)), 4),
        "seeds_apart": round(statistics.mean(abs(x - statistics.mean(own)) for own in ends.values() for x in own), 4),
        "largest_gap": round(float(max(gaps)), 4),
        **{
            f"update_s_{name}": round(min(start.processor_seconds / start.steps for start in own), 4)
            for name, own in costs.items()
        },
    }


def train(folder: Path, run: Path, spec: dict, steps: int, seed: int, way: Way) -> Path:
    """The run again, in `folder`, for so many updates, in one way."""
    folder.mkdir(parents=True)
    precision, choice = way
    own = {"max_steps": steps, "precision": precision, "validate_every": max(1, steps // 10)}
    changed = spec | {"seed": seed, "training": spec["training"] | own}
    changed["corpus"] = os.path.relpath((run / spec["corpus"]).resolve(), folder.resolve())
    (folder / "run.yaml").write_text(yaml.safe_dump(changed))
    command = [sys.executable, "-m", "pipeline", "train", "--run", str(folder), "--device", "cpu", "--threads", "1"]
    environment = dict(os.environ)
    environment["XDG_CACHE_HOME"] = str(folder / "cache")
    path = cache_path(folder / "cache/reprise")
    path.parent.mkdir(parents=True)
    (choice or choose_backend(cache_folder()).model_copy(update={"widened": False})).write(path)
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return folder


if __name__ == "__main__":
    main()
