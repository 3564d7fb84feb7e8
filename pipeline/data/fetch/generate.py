"""Write a corpus with the embedded grammar, as its dataset file says; needs no network.

    python -m pipeline generate --dataset workflow/datasets/grammar-en-de.yaml --corpus work/corpora/grammar-en-de

writes raw/{train,dev,test}.{en,de}, {train,dev,test}.trees and {train,dev,test}.phenomena.jsonl: aligned text in the
languages of the dataset, English trees, and what to look for in each line. raw.done names them.
"""

import argparse
import logging

from pipeline.data.corpus_arguments import corpus_arguments
from pipeline.data.dataset import GrammarDataset, GrammarTreebank, load_one_of
from pipeline.data.fetch.raw_mark import write_raw_mark
from pipeline.grammar.corpus import Limits
from pipeline.grammar.splits import write_splits

log = logging.getLogger(__name__)
add_arguments = corpus_arguments


def run(args: argparse.Namespace) -> None:
    dataset = load_one_of(args.dataset, GrammarDataset | GrammarTreebank, "what the grammar writes")
    wanted = dataset.generator
    languages = [dataset.src] if isinstance(dataset, GrammarTreebank) else list(dataset.languages)
    sizes, chained = (dict[str, int](counts.items()) for counts in (wanted.sizes, wanted.chained))
    limits = Limits(wanted.words, wanted.vocabulary)
    write_splits(args.corpus, languages, sizes, wanted.domain, wanted.seed, chained, limits)
    write_raw_mark(args.corpus)
    log.info("%s: %d sentences of domain %s", args.corpus, sum(wanted.sizes.values()), wanted.domain)
