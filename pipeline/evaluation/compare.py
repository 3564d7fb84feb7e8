"""Is one score better than another? Paired bootstrap of two score files of the same test set.

    python -m pipeline compare work/small/runs/weighted/A/multi30k-en-de/seed1/scores/final/test.json \\
        work/small/runs/attention/base/multi30k-en-de/seed1/scores/final/test.json --metric sacrebleu

Prints the first less the second, its 95 % interval and a two-sided p-value; writes nothing.
"""

import argparse
import json
from pathlib import Path

from pipeline.errors import UserError
from pipeline.metrics import metric_named
from pipeline.metrics.statistics.score_file import read_statistics
from pipeline.metrics.statistics.significance import Comparison, paired_bootstrap
from pipeline.records.scores import ScoreFile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", type=Path, help="score file")
    parser.add_argument("second", type=Path, help="score file")
    parser.add_argument("--metric", default="bleu_paper", help="as named in the files (default: %(default)s)")


def run(args: argparse.Namespace) -> None:
    print(json.dumps({"metric": args.metric, **vars(compare_scores(args.first, args.second, args.metric))}))


def compare_scores(a: Path, b: Path, name: str) -> Comparison:
    """Paired bootstrap of two score files on the metric `name`.

    Raises:
        UserError: they are of different test sets or references.
    """
    ours, theirs = ScoreFile.read(a), ScoreFile.read(b)
    for key in ("test_set", "lines", "references"):
        if (one := getattr(ours, key)) != (other := getattr(theirs, key)):
            raise UserError(f"can't compare {a} and {b}: {key} differs ({one}, {other})")
    return paired_bootstrap(read_statistics(a, name), read_statistics(b, name), metric_named(name).total)
