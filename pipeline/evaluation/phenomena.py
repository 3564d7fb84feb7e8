"""What a translation into English does with names, idioms and word order, on sentences of the embedded grammar.

    python -m pipeline phenomena --dataset workflow/datasets/grammar-zh-en.yaml --corpus work/corpora/grammar-zh-en \\
        --split test --tokenised translations/final/test.tok --out phenomena/final/test.json

reads   <corpus>/<split>.phenomena.jsonl, which the grammar wrote; <corpus>/prepared/<split>.tok.en; the vocabularies
writes  phenomena/final/test.json: {dataset, split, test_set, lines, metrics: {names, clauses, …: {value, low, high,
        signature}}, statistics, references, inputs, training}: all that pipeline/metrics has for the grammar
        phenomena/final/test.npz: successes and trials of each sentence, for paired tests

A success is looked for in the words of the translation; how it was said otherwise counts for nothing.
"""

import argparse
import json
from pathlib import Path

from pipeline.core.errors import UserError
from pipeline.core.sha256 import sha256_file
from pipeline.data.dataset import GrammarDataset, SplitName, load_dataset
from pipeline.data.text.checked_lines import check_references, read_lines
from pipeline.data.text.vocabulary import load_vocabularies
from pipeline.data.trees.trees import parse_tree
from pipeline.evaluation.scored import scored, scoring_arguments
from pipeline.metrics.phenomena import GrammarSentence, GrammarTranslations
from pipeline.metrics.score_file import write_score


def add_arguments(parser: argparse.ArgumentParser) -> None:
    scoring_arguments(parser, "of the grammar, into English")
    parser.add_argument("--corpus", type=Path, required=True, help="folder of the corpus")
    parser.add_argument("--tokenised", type=Path, required=True, help="translation, tokenised, one line a sentence")


def run(args: argparse.Namespace) -> None:
    score_phenomena(args.dataset, args.corpus, args.split, args.tokenised, args.out)


def score_phenomena(dataset_file: Path, corpus: Path, split: SplitName, tokenised: Path, out: Path) -> None:
    """Count what a translation of a split of the grammar got right and write `out`.

    Raises:
        UserError: The dataset is not the grammar's into English, or a file has other lines than the test set.
    """
    dataset = load_dataset(dataset_file)
    if not isinstance(dataset, GrammarDataset) or dataset.tgt != "en":
        raise UserError(f"{dataset_file}: is not written by the grammar into English; it has no phenomena to count")
    facts = corpus / f"{split}.phenomena.jsonl"
    lines = check_references(dataset, split, corpus / "prepared")
    records = [json.loads(line) for line in read_lines(facts, lines)]
    hypotheses = read_lines(tokenised, lines)
    sentences = [
        GrammarSentence(hypothesis.split(" "), record, parse_tree(record["tree"], "phenomena"))
        for record, hypothesis in zip(records, hypotheses, strict=True)
    ]
    src, tgt = (vocabulary.words or [] for vocabulary in load_vocabularies(corpus))
    record = scored(dataset, split, lines, sha256_file(facts), [tokenised, facts])
    write_score(out, GrammarTranslations(sentences, src, tgt, dataset.lowercase), record)
