"""Record the run-to-run variance of one system from many seeds, as compact data.

    python bench/record_noise.py docs/measured/noise/transformer final 'test*' work/demo/runs/attention/C1/DATASET/seed*

reads   run folders of one system with many seeds: `scores/<decoding>/<splits>`, and perplexities of the same splits or
        of the development set. Sentences of several splits (`test*`) are pooled
writes  FILE.json, the record that `plan` and claims read, and FILE.npz: for each seed the statistics of each sentence,
        the loss at each validation, and digests of the weights, with which tests compare the system with itself
"""

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from pipeline.analysis.training_curves import curve_gaps, loss_curve, with_training_losses
from pipeline.config import load_run
from pipeline.core.records.outputs import ScoreFile
from pipeline.core.records.training import DEV_LOSS, MeasuredNoise, TrainedRun, TrainingCost
from pipeline.metrics import metric_named, read_statistics, write_statistics

KEPT = ("bleu_paper", "gleu", "wer", "perplexity")
"""Metrics whose statistics are kept, where there are such."""


def score_paths(folder: Path, decoding: str, splits: str) -> dict[str, list[Path]]:
    """Score files below a run's folder, by metric."""
    found = defaultdict(list)
    perplexities = folder / "perplexities" / decoding
    for pattern in (folder / "scores" / decoding / splits, perplexities / splits, perplexities / "dev"):
        new = defaultdict(list)
        for path in sorted(pattern.parent.glob(f"{pattern.name}.json")):
            for name in ScoreFile.read(path).metrics:
                new[name].append(path.relative_to(folder))
        found |= {name: paths for name, paths in new.items() if name not in found}
    return found


def main(out: Path, decoding: str, splits: str, folders: list[Path]) -> None:
    curves = [with_training_losses(loss_curve(folder), folder) for folder in folders]
    trained = [TrainedRun.read(folder / "done.json") for folder in folders]
    rows = {
        name: np.array([np.concatenate([read_statistics(folder / path, name) for path in paths]) for folder in folders])
        for name, paths in score_paths(folders[0], decoding, splits).items()
    }
    specs = [load_run(folder / "run.yaml") for folder in folders]
    kinds = {(spec.paper, spec.system, spec.dataset, spec.scale) for spec in specs}
    if len(kinds) > 1 or not any(folders[0].glob(f"scores/{decoding}/{splits}.json")):
        sys.exit(f"{folders[0]}: no scores/{decoding}/{splits}, or not the only system: {sorted(kinds)}")
    values = {name: metric_named(name).total(statistics.sum(axis=1)).tolist() for name, statistics in rows.items()}
    values |= {
        DEV_LOSS: [float(curve.dev[-1]) for curve in curves],
        "training_loss": [float(curve.train[-1]) for curve in curves],
        "curve_gap": curve_gaps(curves),
    }
    MeasuredNoise(
        system=f"{specs[0].paper}/{specs[0].system}",
        dataset=specs[0].dataset,
        scale=specs[0].scale,
        commit=trained[0].provenance["commit"],
        device=TrainingCost.read(folders[0] / "cost.json").hardware,
        seeds=[spec.seed for spec in specs],
        weights=[done.weights_digest for done in trained],
        values=values,
    ).write(out.with_suffix(".json"))
    kept = {name: compact(statistics) for name, statistics in rows.items() if name in KEPT}
    losses = {
        "steps": curves[0].steps,
        "train": [curve.train for curve in curves],
        "dev": [curve.dev for curve in curves],
    }
    write_statistics(out.with_suffix(".npz"), kept | {name: np.array(loss) for name, loss in losses.items()})


def compact(rows: np.ndarray) -> np.ndarray:
    """Counts as small integers; nats as they are, to single precision."""
    return rows.astype(np.int16) if (rows == rows.astype(np.int16)).all() else rows.astype(np.float32)


if __name__ == "__main__":
    target, decoding, splits, *runs = sys.argv[1:]
    main(Path(target), decoding, splits, sorted(map(Path, runs), key=lambda folder: load_run(folder / "run.yaml").seed))
