"""Stage `generate`: corpora written by the embedded grammar."""

import logging
from pathlib import Path

from pipeline.data.dataset import GrammarDataset, GrammarTreebank, load_one_of
from pipeline.data.fetch.raw_text import write_raw_mark
from pipeline.grammar.corpus import Limits
from pipeline.grammar.splits import write_splits

log = logging.getLogger(__name__)


def generate(*, dataset: Path, corpus: Path) -> None:
    """Write a corpus with the embedded grammar.

        python -m pipeline generate --dataset workflow/datasets/grammar-en-de.yaml --corpus work/corpora/grammar-en-de

    Write raw/{train,dev,test}.{en,de}, {train,dev,test}.trees and {train,dev,test}.phenomena.jsonl: aligned text in the
    languages of the dataset, English trees, and the phenomena in each line. raw.done lists them. Needs no network.

    Args:
        dataset: Dataset file.
        corpus: Folder of the corpus.
    """
    record = load_one_of(dataset, GrammarDataset | GrammarTreebank, "what the grammar writes")
    wanted = record.generator
    languages = [record.src] if isinstance(record, GrammarTreebank) else list(record.languages)
    sizes, chained = (dict[str, int](counts.items()) for counts in (wanted.sizes, wanted.chained))
    limits = Limits(wanted.words, wanted.vocabulary)
    write_splits(corpus, languages, sizes, wanted.domain, wanted.seed, chained, limits)
    write_raw_mark(corpus)
    log.info("%s: %d sentences of domain %s", corpus, sum(wanted.sizes.values()), wanted.domain)
