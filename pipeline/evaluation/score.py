"""Score translations of a test set by BLEU in each recipe, with 95 % intervals.

    python -m pipeline score --hypotheses hyp.txt --tokenised-hypotheses hyp.tok \\
        --references prepared/test.de --tokenised-references prepared/test.tok.de \\
        --test-set newstest2014 --lines 3003 --compound-split --out scores/beam4/newstest2014.json

Writes scores/beam4/newstest2014.json: {test_set, lines, metrics: {bleu_paper, bleu_tok, bleu_tok_lc, sacrebleu, gleu,
perplexity if --nll is given: {value, low, high, signature}}, statistics, references, inputs}, and newstest2014.npz,
the statistics of each sentence.
"""

import argparse
import logging
from pathlib import Path

from pipeline.errors import UserError
from pipeline.evaluation.bleu import Recipe, SentenceBLEU, recipes
from pipeline.evaluation.gleu import SIGNATURE as GLEU_SIGNATURE
from pipeline.evaluation.gleu import gleu_statistics
from pipeline.evaluation.inputs import check_digest, check_lines, check_untokenised, read_lines
from pipeline.evaluation.score_file import metric_named, write_statistics
from pipeline.evaluation.significance import bootstrap_interval
from pipeline.files import read_json, sha256_file, sha256_json, write_json

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    files = parser.add_argument_group("texts, one sentence a line")
    files.add_argument("--hypotheses", type=Path, required=True, help="detokenised")
    files.add_argument("--tokenised-hypotheses", type=Path, required=True)
    files.add_argument("--references", type=Path, nargs="+", required=True, help="raw; one file a reference")
    files.add_argument("--tokenised-references", type=Path, nargs="+", required=True)
    test_set = parser.add_argument_group("the test set they have to be")
    test_set.add_argument("--test-set", required=True, help="its name, for the tables")
    test_set.add_argument("--lines", type=int, required=True)
    test_set.add_argument("--sha256", nargs="*", default=[], help="of each file of --references, in order")
    paper = parser.add_argument_group("the paper's recipe (bleu_paper)")
    paper.add_argument("--compound-split", action="store_true", help="split compounds at hyphens (WMT en-de)")
    paper.add_argument("--lowercase", action="store_true", help="case-insensitive (NIST)")
    paper.add_argument("--reference-length", choices=["closest", "shortest"], default="closest")
    parser.add_argument("--sacrebleu-tokenizer", choices=["13a", "zh"], default="13a", help="zh into Chinese")
    parser.add_argument("--nll", type=Path, help="JSON of the stage `perplexity`")
    parser.add_argument("--out", type=Path, required=True)


def run(args: argparse.Namespace) -> None:
    chosen = recipes(args.compound_split, args.lowercase, args.reference_length, args.sacrebleu_tokenizer)
    texts = read_texts(args)
    metrics, statistics = score(chosen, texts)
    if args.nll:
        nll = read_json(args.nll)
        metrics["perplexity"] = {"value": nll["perplexity"], "low": None, "high": None, "signature": nll["signature"]}
    write_statistics(args.out.with_suffix(".npz"), statistics)
    digests = {str(path): sha256_file(path) for path in input_paths(args)}
    result = {
        "test_set": args.test_set,
        "lines": args.lines,
        "metrics": metrics,
        "statistics": args.out.with_suffix(".npz").name,
        "references": sha256_json([digests[str(path)] for path in args.references]),
        "inputs": digests,
    }
    write_json(args.out, result)
    for name, metric in metrics.items():
        log.info("%s %s", name, describe(metric))


def describe(metric: dict) -> str:
    interval = "" if metric["low"] is None else f" ({metric['low']:.2f} to {metric['high']:.2f})"
    return f"{metric['value']:.2f}{interval}  {metric['signature']}"


def input_paths(args: argparse.Namespace) -> list[Path]:
    paths = [args.hypotheses, args.tokenised_hypotheses, *args.references, *args.tokenised_references]
    return paths + ([args.nll] if args.nll else [])


def read_texts(args: argparse.Namespace) -> dict[str, tuple[list[str], list[list[str]]]]:
    """Checked lines, {"raw" | "moses": (hypotheses, lists of references)}."""
    if len(args.references) != len(args.tokenised_references):
        raise UserError(
            f"--references names {len(args.references)} files, --tokenised-references {len(args.tokenised_references)}"
        )
    if args.sha256 and len(args.sha256) != len(args.references):
        raise UserError(f"--sha256 names {len(args.sha256)} digests for {len(args.references)} files of --references")
    for path, digest in zip(args.references, args.sha256, strict=False):
        check_digest(path, digest)
    raw, moses = (
        [read_checked(path, args.lines) for path in (hypotheses, *references)]
        for hypotheses, references in (
            (args.hypotheses, args.references),
            (args.tokenised_hypotheses, args.tokenised_references),
        )
    )
    for path, lines in zip((args.hypotheses, *args.references), raw, strict=True):
        check_untokenised(path, lines)
    return {"raw": (raw[0], raw[1:]), "moses": (moses[0], moses[1:])}


def read_checked(path: Path, expected: int) -> list[str]:
    lines = read_lines(path)
    check_lines(path, lines, expected)
    return lines


def score(chosen: tuple[Recipe, ...], texts: dict[str, tuple[list[str], list[list[str]]]]) -> tuple[dict, dict]:
    """Metrics {name: {value, low, high, signature}} and statistics {name: (N, F)}."""
    statistics, signatures = {}, {}
    for recipe in chosen:
        counter = SentenceBLEU(recipe)
        statistics[recipe.name] = counter.statistics(*texts[recipe.text])
        signatures[recipe.name] = counter.signature()
    if len(texts["moses"][1]) == 1:  # GLEU knows one reference
        statistics["gleu"] = gleu_statistics(statistics["bleu_tok"])
        signatures["gleu"] = GLEU_SIGNATURE
    metrics = {}
    for name, rows in statistics.items():
        interval = bootstrap_interval(rows, metric_named(name))
        metrics[name] = {**vars(interval), "signature": signatures[name]}
    return metrics, statistics
