"""Write a corpus with the embedded grammar, as its dataset file says; needs no network.

    python -m pipeline generate --dataset workflow/datasets/grammar-en-de.yaml --corpus work/corpora/grammar-en-de

writes raw/{train,dev,test}.{en,de}, {train,dev,test}.trees and {train,dev,test}.phenomena.jsonl: aligned text in the
languages of the dataset, English trees, and what to look for in each line.
"""

import argparse
import logging
from pathlib import Path

from pipeline.data.dataset import GrammarDataset, GrammarTreebank, load_dataset
from pipeline.errors import UserError
from pipeline.grammar.splits import write_splits

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dataset", type=Path, required=True, help="dataset file: languages, domain, sizes, seed")
    parser.add_argument("--corpus", type=Path, required=True, help="folder to write to")


def run(args: argparse.Namespace) -> None:
    dataset = load_dataset(args.dataset)
    if not isinstance(dataset, GrammarDataset | GrammarTreebank):
        raise UserError(f"{args.dataset}: not written by the grammar, its kind is {dataset.kind!r}")
    wanted = dataset.generator
    languages = [dataset.src] if isinstance(dataset, GrammarTreebank) else list(dataset.languages)
    sizes, chained = (dict[str, int](counts.items()) for counts in (wanted.sizes, wanted.chained))
    write_splits(args.corpus, languages, sizes, wanted.domain, wanted.seed, chained)
    log.info("%s: %d sentences of domain %s", args.corpus, sum(wanted.sizes.values()), wanted.domain)
