"""Score the translation of a split by BLEU in each recipe, with 95 % intervals.

    python -m pipeline score --dataset workflow/datasets/multi30k-en-de.yaml \\
        --prepared work/corpora/multi30k-en-de/prepared --split test \\
        --tokenised translations/final/test.tok --text translations/final/test.txt --out scores/final/test.json

reads   <prepared>/<split>.<tgt>, <prepared>/<split>.tok.<tgt>: the references, raw and tokenised; further ones in
        <split>.<tgt>2 …
writes  scores/final/test.json: {dataset, split, test_set, lines, metrics: {bleu_paper, bleu_tok, bleu_tok_lc,
        sacrebleu, gleu: {value, low, high, signature}}, statistics, references, inputs}; bleu_closest too for NIST
        sets, gleu for those of one reference
        scores/final/test.npz: the statistics of each sentence, for paired tests

The test set has to be the one that the dataset file describes, by line count and digest.
"""

import argparse
import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.data.dataset import load_parallel
from pipeline.evaluation.bleu import Recipe, SentenceBLEU, recipes
from pipeline.evaluation.gleu import SIGNATURE as GLEU_SIGNATURE
from pipeline.evaluation.gleu import gleu_statistics
from pipeline.evaluation.inputs import check_lines, check_untokenised, read_lines
from pipeline.evaluation.score_file import metric_named, write_statistics
from pipeline.evaluation.significance import bootstrap_interval
from pipeline.evaluation.test_sets import check_references, name_of_split
from pipeline.files import sha256_file, sha256_json
from pipeline.records.scores import MetricValue, ScoreFile

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Texts:
    """Hypotheses and references of one test set, line by line; one or more lists of references."""

    hypotheses: list[str]
    references: list[list[str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dataset", type=Path, required=True, help="dataset file: test set, recipe of the paper's BLEU"
    )
    parser.add_argument("--prepared", type=Path, required=True, help="folder prepared/ of the corpus")
    parser.add_argument("--split", default="test", help="train, dev or test")
    parser.add_argument("--tokenised", type=Path, required=True, help="translation, tokenised, one line a sentence")
    parser.add_argument("--text", type=Path, required=True, help="the same translation, detokenised")
    parser.add_argument("--out", type=Path, required=True, help="a .json file")


def run(args: argparse.Namespace) -> None:
    dataset = load_parallel(args.dataset)
    suffixes = dataset.references(args.split)
    raw_references = [args.prepared / f"{args.split}.{suffix}" for suffix in suffixes]
    tokenised_references = [args.prepared / f"{args.split}.tok.{suffix}" for suffix in suffixes]
    lines = check_references(dataset, args.split, args.prepared)
    texts = {
        "raw": read_texts(args.text, raw_references, lines),
        "moses": read_texts(args.tokenised, tokenised_references, lines),
    }
    check_untokenised(args.text, texts["raw"].hypotheses)
    for path, reference in zip(raw_references, texts["raw"].references, strict=True):
        check_untokenised(path, reference)
    chosen = recipes(dataset.compound_split, dataset.bleu == "nist", "zh" if dataset.tgt == "zh" else "13a")
    metrics, statistics = score(chosen, texts)
    inputs = [args.text, args.tokenised, *raw_references, *tokenised_references]
    record = ScoreFile(
        dataset=dataset.name,
        split=args.split,
        test_set=name_of_split(dataset, args.split),
        lines=lines,
        metrics=metrics,
        statistics=args.out.with_suffix(".npz").name,
        references=digest_of(raw_references),
        inputs={str(path): sha256_file(path) for path in inputs},
    )
    write_statistics(args.out.with_suffix(".npz"), statistics)
    record.write(args.out)
    for name, metric in metrics.items():
        log.info("%s %.2f (%.2f to %.2f)  %s", name, metric.value, metric.low, metric.high, metric.signature)


def digest_of(references: list[Path]) -> str:
    """Of one reference its file's own."""
    digests = [sha256_file(path) for path in references]
    return digests[0] if len(digests) == 1 else sha256_json(digests)


def read_texts(hypotheses: Path, references: list[Path], lines: int) -> Texts:
    """Raises UserError unless all files have `lines` lines."""
    paths = [hypotheses, *references]
    texts = [read_lines(path) for path in paths]
    for path, text in zip(paths, texts, strict=True):
        check_lines(path, text, lines)
    return Texts(texts[0], texts[1:])


def score(chosen: tuple[Recipe, ...], texts: dict[str, Texts]) -> tuple[dict[str, MetricValue], dict[str, np.ndarray]]:
    """Metrics and their statistics (N, F), by name.

    texts: {"raw": detokenised, "moses": tokenised}.
    """
    statistics, signatures = {}, {}
    for recipe in chosen:
        counter = SentenceBLEU(recipe)
        statistics[recipe.name] = counter.statistics(texts[recipe.text].hypotheses, texts[recipe.text].references)
        signatures[recipe.name] = counter.signature()
    if len(texts["moses"].references) == 1:  # GLEU is defined for one reference
        statistics["gleu"] = gleu_statistics(statistics["bleu_tok"])
        signatures["gleu"] = GLEU_SIGNATURE
    metrics = {
        name: MetricValue(**vars(bootstrap_interval(rows, metric_named(name))), signature=signatures[name])
        for name, rows in statistics.items()
    }
    return metrics, statistics
