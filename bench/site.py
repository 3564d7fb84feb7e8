"""Time the results site and `reprise status` of many runs with made-up scores, in CPU seconds.

    python bench/site.py --seeds 20          # 2,000 runs; 17 to 26 s for the site, 1.8 s for the status, AMD EPYC

The runs are those of all papers at scale demo. Writing their folders to a temporary folder is not timed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/helpers"))

from fabricated import bleu_statistics, perplexity_statistics, write_training
from made_records import score_file

from pipeline.core.artifacts import Score
from pipeline.metrics import metric_named, write_statistics
from pipeline.papers.project import Project, load_project
from pipeline.report.site.build import build
from pipeline.report.site.pages import Pages
from pipeline.report.site.site_data import SiteData

ROOT = Path(__file__).resolve().parents[1]
BLEU = ("bleu_paper", "bleu_closest", "sacrebleu")
COUNTS = {"gleu": 2, "chrf": 18, "f1": 3, "wer": 2, "cer": 2}
METRICS = {"sentences": (*BLEU, "gleu", "chrf"), "trees": ("f1",), "speech": ("wer", "cer"), "characters": ()}
LOSSES = [0.5 + 5 * 0.7**n for n in range(8)]


def main() -> None:
    """Write the runs, and time the site."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = {"work": f"{folder}/work", "scale": "demo", "seeds": args.seeds}
        write_runs(load_project(ROOT, settings))
        start = time.process_time()
        site = SiteData(load_project(ROOT, settings), False)
        build(Pages(Path(folder) / "site", site))
        print(f"site of {len(site.begun)} runs: {time.process_time() - start:.1f} s of processor time")
        before = os.times()
        overrides = [f"--set={key}={value}" for key, value in settings.items()]
        command = [sys.executable, "-m", "reprise", "status", *overrides]
        lines = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.count("\n")
        after = os.times()
        seconds = sum(after[2:4]) - sum(before[2:4])
        print(f"status of them, {lines} lines: {seconds:.1f} s of processor time")


def write_runs(project: Project) -> None:
    """Write what stages leave of every run: its training, and every score that a report needs."""
    site = SiteData(project, False)
    for run in site.runs:
        write_training(project, run, LOSSES, LOSSES)
    for score in site.artifacts:
        if isinstance(score, Score):
            write_scores(project, score)


def write_scores(project: Project, score: Score) -> None:
    """Write a score file with the statistics of 200 sentences."""
    path, form = project.layout.path(score), project.dataset_records[score.scored_on or score.run.dataset].form
    names = ("perplexity",) if "perplexities" in path.parts else METRICS[form] if "scores" in path.parts else ()
    arrays = {name: statistics(name, score.run.seed) for name in names}
    values = {name: float(metric_named(name).total(rows.sum(axis=0))) for name, rows in arrays.items()}
    if not arrays:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_statistics(path.with_suffix(".npz"), arrays)
    metrics = {
        name: {"value": value, "low": value - 1, "high": value + 1, "signature": "toy"}
        for name, value in values.items()
    }
    score_file(metrics, 200).write(path)


def statistics(name: str, seed: int) -> np.ndarray:
    """Make up the statistics of 200 sentences."""
    if name in BLEU:
        return bleu_statistics(0.6, seed)
    if name == "perplexity":
        return perplexity_statistics(1.0, seed)
    return np.random.default_rng(seed).integers(5, 10, (200, COUNTS[name]))


if __name__ == "__main__":
    main()
