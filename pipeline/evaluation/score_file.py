"""A score on disk: a JSON file of metrics, and beside it the statistics of each sentence for paired tests."""

from pathlib import Path

import numpy as np

from pipeline.errors import UserError
from pipeline.evaluation import parsing_f1
from pipeline.evaluation.bleu import bleu
from pipeline.evaluation.error_rates import error_rate
from pipeline.evaluation.gleu import gleu
from pipeline.evaluation.significance import Comparison, Metric, paired_bootstrap
from pipeline.files import atomic_write
from pipeline.records.scores import ScoreFile


def metric_named(name: str) -> Metric:
    """The score of summed statistics, for the metrics that keep them."""
    match name:
        case "bleu_paper" | "bleu_closest" | "bleu_tok" | "bleu_tok_lc":
            return bleu
        case "sacrebleu":
            return lambda totals: bleu(totals, smoothing="exp")
        case "gleu":
            return gleu
        case "perplexity":
            return perplexity
        case "f1" | "f1_40":
            return parsing_f1.f1
        case "cer" | "wer":
            return error_rate
        case "names" | "rare_names" | "idioms" | "clauses" | "reorderings":
            return parsing_f1.rate
        case "gate":
            return mean
        case "exact" | "tagging" | "balanced" | "well_formed":
            return parsing_f1.rate
    raise UserError(
        f"no statistics for {name!r}; there are bleu_paper, bleu_closest, bleu_tok, bleu_tok_lc, sacrebleu, gleu, "
        "perplexity, of speech cer, wer, of parses f1, f1_40, exact, tagging, balanced, well_formed, and of the "
        "grammar's phenomena names, rare_names, idioms, clauses, reorderings, of gates gate"
    )


def perplexity(totals: np.ndarray) -> np.ndarray:
    """exp of the mean of summed nats and subwords (…, 2); infinite when it can't be told from that."""
    with np.errstate(over="ignore"):
        return np.exp(totals[..., 0] / totals[..., 1])


def mean(totals: np.ndarray) -> np.ndarray:
    """Of a summed quantity and its count (…, 2); not a number where there is none."""
    with np.errstate(invalid="ignore"):
        return totals[..., 0] / totals[..., 1]


def write_statistics(path: Path, statistics: dict[str, np.ndarray]) -> None:
    """Whole or absent, compressed; the same bytes for the same statistics."""
    with atomic_write(path, "wb") as handle:
        np.savez_compressed(handle, **statistics)


def read_statistics(score: Path, name: str) -> np.ndarray:
    """(N, F) of the metric `name` of the score file `score`. Raises UserError when missing."""
    path = Path(score).with_suffix(".npz")
    try:
        with np.load(path) as arrays:
            return arrays[name]
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file beside {score}; run the stage `score` again") from error
    except KeyError as error:
        raise UserError(f"{path}: no statistics for {name!r}") from error


def compare_scores(a: Path, b: Path, name: str) -> Comparison:
    """Paired bootstrap of two score files on the metric `name`.

    Raises:
        UserError: they are of different test sets or references.
    """
    ours, theirs = ScoreFile.read(a), ScoreFile.read(b)
    for key in ("test_set", "lines", "references"):
        if (one := getattr(ours, key)) != (other := getattr(theirs, key)):
            raise UserError(f"can't compare {a} and {b}: {key} differs ({one}, {other})")
    return paired_bootstrap(read_statistics(a, name), read_statistics(b, name), metric_named(name))
