"""Stage `prepare-trees`: cleaned trees of a treebank, as sentences and as linearised trees."""

import logging
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random

import numpy as np

from pipeline.core.disk import require_space
from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write
from pipeline.core.records.corpus import PreparedTrees, TreesReport
from pipeline.data.dataset import GrammarTreebank, Treebank, TreebankRecord, load_one_of
from pipeline.data.text.checks import shared_sentences
from pipeline.data.text.text_files import lines_of
from pipeline.data.trees.linearisation import linearise
from pipeline.data.trees.trees import TRACE, Tree, clean, events, parse_tree, words

log = logging.getLogger(__name__)

SEVERAL_WORDS = re.compile(r"\([^ ()]+ [^ ()]+ [^ ()]")
PERCENTILES = (50, 90, 95, 99, 100)
WRITTEN_OVER_READ = 2
"""Bytes written for each byte read: words, symbols and the cleaned tree."""


def prepare_treebank(*, dataset: Path, corpus: Path) -> None:
    """Clean and linearise the trees of a treebank.

        python -m pipeline prepare-trees --dataset workflow/datasets/craft.yaml --corpus work/corpora/craft

    reads   <corpus>/raw/<split>.trees, or <corpus>/<split>.trees of the grammar
    writes  <corpus>/prepared/<split>.tok.en         the words, separated by spaces
            <corpus>/prepared/<split>.tok.brackets   the linearised tree (linearisation.py)
            <corpus>/prepared/<split>.trees          the cleaned tree, against which parses are scored
            <corpus>/prepared/report.json            counts, lengths, and trees left out or repaired

    Traces, empty phrases and function tags are removed, as for every parser that is scored by EVALB. Only a training
    tree without words is left out; elsewhere it is an error.

    Args:
        dataset: Dataset file.
        corpus: Folder of the corpus.
    """
    prepare_trees(load_one_of(dataset, TreebankRecord, "a treebank"), corpus)


def prepare_trees(dataset: Treebank, corpus: Path) -> PreparedTrees:
    """Return the report of a treebank, after writing `prepared/`.

    Raises:
        UserError: Trees are missing or faulty, a dev or test tree has no word, or the disk is too small.
    """
    raw = (path for split in dataset.split_names if (path := raw_path(dataset, corpus, split)).exists())
    require_space(corpus, WRITTEN_OVER_READ * sum(path.stat().st_size for path in raw), "prepared trees")
    splits: dict[str, TreesReport] = {split: prepare_split(dataset, corpus, split) for split in dataset.split_names}
    sentences = {split: corpus / f"prepared/{split}.tok.{dataset.src}" for split in splits}
    report = PreparedTrees(dataset=dataset.name, splits=splits, shared=shared_sentences(dataset.name, sentences))
    report.write(corpus / "prepared/report.json")
    return report


def prepare_split(dataset: Treebank, corpus: Path, split: str) -> TreesReport:
    """Return the report of a split, after writing its sentences, linearised trees and cleaned trees.

    Raises:
        UserError: A tree is faulty, a dev or test tree has no word, or the split is empty.
    """
    counts = SplitCounts()
    with ExitStack() as stack:
        names = (f"{split}.tok.{dataset.src}", f"{split}.tok.{dataset.tgt}", f"{split}.trees")
        sentences, brackets, trees = (stack.enter_context(atomic_write(corpus / "prepared" / name)) for name in names)
        for where, tree in counted(raw_trees(dataset, corpus, split), counts):
            if not tree.children:
                if split != "train":
                    raise UserError(f"{where}: the cleaned tree has no words; only training trees may be left out")
                counts.rejected["no words"] += 1
                continue
            sentence, symbols = words(tree), linearise(tree, where)
            sentences.write(" ".join(sentence) + "\n")
            brackets.write(" ".join(symbols) + "\n")
            trees.write(f"{tree}\n")
            counts.add(tree, len(sentence), len(symbols))
    if not counts.words:
        raise UserError(f"{corpus}: split {split} has no trees; run the stage that writes its raw trees again")
    record = counts.report()
    log.info("%s %s: %d trees, at most %d words and %d symbols", *(dataset.name, split, record.kept), *counts.longest)
    return record


def raw_path(dataset: Treebank, corpus: Path, split: str) -> Path:
    """Return the file of the raw trees of a `split` of a `dataset` in a `corpus`."""
    return (corpus if isinstance(dataset, GrammarTreebank) else corpus / "raw") / f"{split}.trees"


def raw_trees(dataset: Treebank, corpus: Path, split: str) -> Iterator[tuple[str, str, Tree]]:
    """Yield place, text and tree of each line of a `split` of a `dataset` in a `corpus`, with simulated errors."""
    extra = dataset.extra if isinstance(dataset, GrammarTreebank) and split == "train" else None
    rng = Random(f"errors/{extra.seed}") if extra else None
    path = raw_path(dataset, corpus, split)
    for number, line in enumerate(lines_of(path, "run the stage `collect-trees` or `generate` first"), start=1):
        where = f"{path}: line {number}"
        tree = parse_tree(line, where)
        yield where, line, add_errors(tree, extra.errors, rng) if extra and rng and number > extra.after else tree


def counted(trees: Iterator[tuple[str, str, Tree]], counts: "SplitCounts") -> Iterator[tuple[str, Tree]]:
    """Yield place and cleaned tree of `trees` (place, text, tree), and add to the `counts` of the split."""
    for where, text, tree in trees:
        counts.read += 1
        counts.repaired["tag over several words"] += len(SEVERAL_WORDS.findall(text))
        counts.removed["traces"] += text.count(f"({TRACE} ")
        yield where, clean(tree)


class SplitCounts:
    """Counts of a split for the report."""

    def __init__(self):
        self.read = 0
        self.words: list[int] = []
        self.symbols: list[int] = []
        self.rejected, self.repaired, self.removed, self.labels, self.tags = (Counter[str]() for _ in range(5))

    @property
    def longest(self) -> tuple[int, int]:
        """Maximum number of words and symbols of a tree."""
        return max(self.words), max(self.symbols)

    def add(self, tree: Tree, sentence_words: int, symbols: int) -> None:
        """Add the counts of a cleaned `tree` with its numbers of `sentence_words` and `symbols`."""
        self.words.append(sentence_words)
        self.symbols.append(symbols)
        for kind, node in events(tree):
            if kind != "close":
                (self.tags if kind == "tag" else self.labels)[node.label] += 1

    def report(self) -> TreesReport:
        """Return the counts as a record."""
        return TreesReport(
            read=self.read,
            kept=len(self.words),
            src_words=sum(self.words),
            tgt_words=sum(self.symbols),
            words_percentiles=percentiles(self.words),
            symbols_percentiles=percentiles(self.symbols),
            **{name: dict(count) for name, count in vars(self).items() if isinstance(count, Counter)},
        )


def percentiles(lengths: list[int]) -> dict[str, int]:
    """Return percentiles of lengths."""
    found = np.percentile(lengths, PERCENTILES, method="higher")
    return {str(share): int(length) for share, length in zip(PERCENTILES, found, strict=True)}


def add_errors(tree: Tree, share: float, rng: Random) -> Tree:
    """Return a `tree` with the last child of a `share` of phrases attached to the parent phrase, drawn by `rng`.

    High attachment is the most frequent error of real parsers. Each error is one wrong bracket and one missing bracket.
    Recursive, as trees of the grammar are shallow.
    """
    parts: list[Tree] = []
    for child in tree.children:
        child = child if child.is_tag else add_errors(child, share, rng)
        if len(child.children) > 1 and rng.random() < share:
            parts += [Tree(child.label, child.children[:-1]), child.children[-1]]
        else:
            parts.append(child)
    return Tree(tree.label, tuple(parts))
