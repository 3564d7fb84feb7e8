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


def test_error_rates_computed_by_hand():
    """Table 1, first example shortened. Words: where's -> where is (replaced and inserted), greer -> clear: 3 of 6.
    Characters: ' -> space and i inserted; g, r, e, e, r -> c, l, e, a, r, of which three differ: 5 of 31."""
    found = rates(["where's the sport that greer is"], ["where is the sport that clear is"])
    assert len("where's the sport that greer is") == 31
    assert found == {"wer": pytest.approx(100 * 3 / 6), "cer": pytest.approx(100 * 5 / 31)}


def test_all_sentences_count_by_their_length():
    """One of two words and none of two wrong: 1 of 4; one character of 3 and none of 7: 1 of 10."""
    assert rates(["a b", "one two"], ["a c", "one two"]) == {"wer": 25.0, "cer": pytest.approx(100 / 10)}


def test_error_rate_of_empty_and_of_long_hypotheses():
    assert rates(["two words"], [""]) == {"wer": 100.0, "cer": 100.0}
    assert rates(["a"], ["a b c"])["wer"] == 200.0


def test_the_apostrophe_counts():
    assert rates(["it's"], ["its"]) == {"wer": 100.0, "cer": 25.0}


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
