"""FLOPs by the paper's formula: time x devices x sustained throughput."""

import csv
from pathlib import Path

import pytest
from made_records import layer_costs, start_cost

from pipeline.analysis.cells.facts import flops_by_time

DAY_S = 24 * 3600
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("seconds", "printed"), [(DAY_S / 2, "3.3e+18"), (3.5 * DAY_S, "2.3e+19")])
def test_the_papers_formula_gives_its_printed_costs(seconds, printed):
    """The paper trains for 12 hours and 3.5 days on eight P100, and prints two digits."""
    start = start_cost(seconds=seconds, processes=8, threads=4, device="Tesla P100-SXM2-16GB")
    assert f"{flops_by_time([start], None):.1e}" == printed


def test_the_big_model_costs_less_than_a_quarter_of_the_best():
    """The best earlier English-French model of Table 2 by its printed BLEU, ensembles left out."""
    rows = list(csv.DictReader((ROOT / "workflow/papers/attention/table2.csv").open(encoding="utf-8")))
    priced = [row for row in rows if row["flops_enfr"] and row["bleu_enfr"] and "Ensemble" not in row["model"]]
    earlier = [row for row in priced if not row["system_enfr"]]
    best = max(earlier, key=lambda row: float(row["bleu_enfr"]))
    start = start_cost(seconds=3.5 * DAY_S, processes=8, threads=4, device="Tesla P100-SXM2-16GB")
    assert best["model"].startswith("MoE")
    assert flops_by_time([start], None) < float(best["flops_enfr"]) / 4


def test_starts_are_added_and_an_unknown_device_leaves_no_number():
    first = start_cost(seconds=10.0, processes=2, device="Tesla K80")
    other = first.model_copy(update={"device": "some new device"})
    assert flops_by_time([first, first], None) == pytest.approx(2 * 10 * 2 * 2.8e12)
    assert flops_by_time([first, other], None) is None


def test_a_processors_rate_is_measured_by_core():
    measured = layer_costs([], device="EPYC", matmul_flops_per_s=3e10)
    start = start_cost(seconds=10.0, threads=2, device="EPYC")
    assert flops_by_time([start], measured) == pytest.approx(10 * 2 * 3e10)
    by_four = layer_costs([], device="EPYC", matmul_flops_per_s=3e10, threads=4)
    assert flops_by_time([start], by_four) == pytest.approx(10 * 3e10 / 2)
    assert flops_by_time([start.model_copy(update={"device": "Xeon"})], measured) is None
    on_gpu = layer_costs([], device="H100", matmul_flops_per_s=3e10, on_processor=False)
    assert flops_by_time([start.model_copy(update={"device": "H100"})], on_gpu) == pytest.approx(10 * 3e10)
