"""Generate the embedded corpus: aligned text in up to four languages, English trees, and what to look for in each line.

    python -m pipeline grammar --languages en de --domain film --sizes train=20000 dev=1000 test=1000 --seed 1 --out DIR

writes DIR/raw/{train,dev,test}.{en,de}, DIR/{train,dev,test}.trees and DIR/{train,dev,test}.phenomena.jsonl.
"""

import argparse
import logging
from pathlib import Path

from pipeline.errors import UserError
from pipeline.grammar.corpus import DOMAINS, LANGUAGES
from pipeline.grammar.splits import write_splits

logger = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--languages", nargs="+", choices=LANGUAGES, required=True, help="sides to write")
    parser.add_argument("--domain", choices=DOMAINS, required=True, help="film sentences, search queries, or half each")
    parser.add_argument("--sizes", nargs="+", metavar="SPLIT=COUNT", required=True, help="sentences per split")
    parser.add_argument(
        "--chained",
        nargs="+",
        default=[],
        metavar="SPLIT=WORDS",
        help="splits of which a line is several sentences in a row, so many English words or more",
    )
    parser.add_argument("--seed", type=int, required=True, help="same seed, same corpus")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")


def run(args: argparse.Namespace) -> None:
    sizes, chained = parse_sizes(args.sizes), parse_sizes(args.chained, "--chained")
    write_splits(args.out, args.languages, sizes, args.domain, args.seed, chained)
    logger.info("wrote %s of domain %s to %s", ", ".join(args.sizes), args.domain, args.out)


def parse_sizes(settings: list[str], option: str = "--sizes") -> dict[str, int]:
    """`["train=20000", "dev=1000"]` as a mapping. Raises UserError for anything else."""
    sizes = {}
    for setting in settings:
        split, _, count = setting.partition("=")
        if not count.isdecimal():
            raise UserError(f"{option} {setting}: write SPLIT=COUNT, for example train=20000")
        sizes[split] = int(count)
    return sizes
