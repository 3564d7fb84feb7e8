"""Is one score better than another? Paired bootstrap of two score files of the same test set.

    python -m pipeline compare work/small/runs/weighted/A/multi30k-en-de/seed1/scores/final/test.json \\
        work/small/runs/attention/base/multi30k-en-de/seed1/scores/final/test.json --metric sacrebleu

Prints the first less the second, its 95 % interval and a two-sided p-value; writes nothing.
"""

import argparse
import json
from pathlib import Path

from pipeline.evaluation.score_file import compare_scores


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", type=Path, help="score file")
    parser.add_argument("second", type=Path, help="score file")
    parser.add_argument("--metric", default="bleu_paper", help="as named in the files (default: %(default)s)")


def run(args: argparse.Namespace) -> None:
    print(json.dumps({"metric": args.metric, **vars(compare_scores(args.first, args.second, args.metric))}))
