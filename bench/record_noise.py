"""Keep what many trainings of one system say of the noise between trainings, as compact data.

    python bench/record_noise.py docs/measured/noise/transformer final work/demo/runs/attention/C1/grammar-en-de/seed*

reads   run folders of one system under many seeds, with `scores/<decoding>/test` and `perplexities/<decoding>/test`
writes  FILE.json, the record that `plan` and claims read, and FILE.npz: of each seed the statistics of each
        sentence, losses at each validation, and weights' digests, by which tests judge the system against itself
"""

import sys
from pathlib import Path

import numpy as np

from pipeline.config import load_run
from pipeline.kinds.training_curves import curve_gaps, fit_curve
from pipeline.metrics.statistics.score_file import read_statistics, write_statistics
from pipeline.records.noise import DEV_LOSS, MeasuredNoise
from pipeline.records.scores import ScoreFile
from pipeline.records.training import TrainedRun, TrainingCost

KEPT = ("bleu_paper", "gleu", "wer", "perplexity")
"""Metrics whose statistics are kept, where there are such."""


def score_paths(folder: Path, decoding: str) -> list[Path]:
    return [
        path for kind in ("scores", "perplexities") for path in sorted(folder.glob(f"{kind}/{decoding}/test*.json"))
    ]


def main(out: Path, decoding: str, folders: list[Path]) -> None:
    spec, curves = load_run(folders[0] / "run.yaml"), [fit_curve(folder) for folder in folders]
    trained = [TrainedRun.read(folder / "trained.json") for folder in folders]
    scores = {
        name: path.relative_to(folders[0])
        for path in score_paths(folders[0], decoding)
        for name in ScoreFile.read(path).metrics
    }
    values = {
        name: [ScoreFile.read(folder / path).metrics[name].value for folder in folders] for name, path in scores.items()
    }
    values |= {
        DEV_LOSS: [float(curve.dev[-1]) for curve in curves],
        "training_loss": [float(curve.train[-1]) for curve in curves],
        "curve_gap": curve_gaps(curves),
    }
    rows = {
        name: np.array([read_statistics(folder / path, name) for folder in folders]) for name, path in scores.items()
    }
    MeasuredNoise(
        system=f"{spec.paper}/{spec.system}",
        dataset=spec.dataset,
        scale=spec.scale,
        commit=trained[0].provenance["commit"],
        device=TrainingCost.read(folders[0] / "cost.json").hardware,
        seeds=[load_run(folder / "run.yaml").seed for folder in folders],
        weights=[one.weights_digest for one in trained],
        values=values,
    ).write(out.with_suffix(".json"))
    kept = {name: compact(one) for name, one in rows.items() if name in KEPT}
    losses = {"steps": curves[0].steps, "train": [one.train for one in curves], "dev": [one.dev for one in curves]}
    write_statistics(out.with_suffix(".npz"), kept | {name: np.array(one) for name, one in losses.items()})


def compact(rows: np.ndarray) -> np.ndarray:
    """Counts as small integers; nats as they are, to single precision."""
    return rows.astype(np.int16) if (rows == rows.astype(np.int16)).all() else rows.astype(np.float32)


if __name__ == "__main__":
    target, decoding, *runs = sys.argv[1:]
    main(Path(target), decoding, sorted(map(Path, runs), key=lambda folder: load_run(folder / "run.yaml").seed))
