"""Say whether one run's score is better than another's, by a paired bootstrap over the sentences of a test set.

    reprise compare weighted/A/wmt14-en-de/1 attention/base/wmt14-en-de/1 --metric sacrebleu

Compares what the workflow scored; runs, or score files, whichever are named.
"""

import argparse
from pathlib import Path

from pipeline.errors import UserError
from pipeline.evaluation.compare import compare_scores
from pipeline.experiment.settings import parse_settings
from pipeline.kinds.scored import measure_of
from pipeline.layout import path_in_run
from pipeline.products import Score
from pipeline.schema import known
from pipeline.use.named_run import decoding_of, find_run

USUAL = {"sentences": "bleu_paper", "trees": "f1", "speech": "wer", "characters": "perplexity"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="RUN", help="paper/system/dataset/seed, a run's folder, or a score file")
    parser.add_argument("second", metavar="RUN", help="likewise")
    parser.add_argument("--metric", help="default: bleu_paper, f1 or wer, by what the models make")
    parser.add_argument("--split", default="test", help="dev, test, test2, … (default: test)")
    parser.add_argument("--decoding", default="", metavar="NAME", help="named decoding of both (default: the usual)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="replace a key of config.yaml")


def run(args: argparse.Namespace) -> None:
    metric = args.metric or usual_metric(args.first, args.set)
    found = compare_scores(score_of(args.first, metric, args), score_of(args.second, metric, args), metric)
    between = f"95 % between {found.low:+.2f} and {found.high:+.2f}, p = {found.p_value:.4f}"
    print(f"{metric}: {args.first} less {args.second}: {found.difference:+.2f} ({between})")


def usual_metric(name: str, settings: list[str]) -> str:
    if name.endswith(".json"):
        return "bleu_paper"
    found = find_run(name, parse_settings(settings))
    return USUAL[found.project.dataset_records[found.spec.dataset].form]


def score_of(name: str, metric: str, args: argparse.Namespace) -> Path:
    """The score file of a run. Raises UserError when the run isn't scored so."""
    if name.endswith(".json"):
        return Path(name)
    found = find_run(name, parse_settings(args.set))
    dataset = found.project.dataset_records[found.spec.dataset]
    known(args.split, dataset.split_names, f"--split of {found.spec.dataset}")
    decoding = decoding_of(found, args.decoding).name
    scored_on = found.spec.dataset if dataset.form == "speech" and metric != "perplexity" else None
    score = Score(found.id, measure_of(metric), decoding, args.split, scored_on)
    path = found.folder / path_in_run(score)
    if not path.exists():
        raise UserError(f"{path}: not scored yet; `snakemake {found.project.layout.path(score)}` does it")
    return path
