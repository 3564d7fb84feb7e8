"""Error rates and domain gaps, computed by hand and against the numbers that the paper printed."""

import csv
from pathlib import Path

import pytest

from pipeline.metrics import metric_named
from pipeline.metrics.error_rates import Transcripts, domain_gap

PAPER = Path(__file__).resolve().parents[2] / "workflow/papers/coldfusion"


def rates(references: list[str], hypotheses: list[str]) -> dict[str, float]:
    metrics, transcripts = map(metric_named, ("cer", "wer")), Transcripts(references, hypotheses)
    return {metric.name: float(metric.total(metric.statistics(transcripts).sum(axis=0))) for metric in metrics}


BY_HAND = [
    # Table 1, first example shortened. Words: where's -> where is (replaced and inserted), greer -> clear. Characters:
    # ' -> space and i inserted; g, r, e, e, r -> c, l, e, a, r, of which three differ
    (["where's the sport that greer is"], ["where is the sport that clear is"], 3 / 6, 5 / 31),
    # every sentence counts by its length
    (["a b", "one two"], ["a c", "one two"], 1 / 4, 1 / 10),
    (["two words"], [""], 1, 1),
    (["a"], ["a b c"], 2, 4),
    (["it's"], ["its"], 1, 1 / 4),
]
"""References, hypotheses, and the rates of errors in words and in characters."""


@pytest.mark.parametrize(("references", "hypotheses", "wer", "cer"), BY_HAND)
def test_error_rates_computed_by_hand(references, hypotheses, wer, cer):
    assert rates(references, hypotheses) == {"wer": pytest.approx(100 * wer), "cer": pytest.approx(100 * cer)}


def printed(table: str) -> list[dict[str, str]]:
    with open(PAPER / table, encoding="utf-8", newline="") as rows:
        return list(csv.DictReader(rows))


@pytest.mark.parametrize("table", ["table3.csv", "table5.csv"])
def test_printed_domain_gaps_follow_from_printed_wers(table):
    rows = {row["system"]: row for row in printed("table3.csv")}
    source, target = (float(rows[name]["target_wer"]) for name in ("attention-source", "attention-target"))
    with_gap = [row for row in printed(table) if row["domain_gap"]]
    assert len(with_gap) == {"table3.csv": 10, "table5.csv": 7}[table]
    for row in with_gap:
        gap = domain_gap(float(row["target_wer"]), source, target)
        assert gap == pytest.approx(float(row["domain_gap"]), abs=0.006), row["system"]
