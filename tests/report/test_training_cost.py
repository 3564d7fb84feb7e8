"""Training costs of reports, and training curves."""

import csv
import json

import numpy as np
import pytest
from made_records import layer_costs, start_cost

from pipeline.analysis import training_curves
from pipeline.analysis.cells.facts import flops_by_time
from pipeline.core.errors import UserError
from pipeline.core.provenance import ROOT

DAY_S = 24 * 3600


def on_eight_p100(seconds):
    return start_cost(seconds=seconds, processes=8, threads=4, device="Tesla P100-SXM2-16GB")


@pytest.mark.parametrize(("seconds", "printed"), [(DAY_S / 2, "3.3e+18"), (3.5 * DAY_S, "2.3e+19")])
def test_the_papers_formula_gives_its_printed_costs(seconds, printed):
    """The paper trains for 12 hours and 3.5 days, and prints two digits."""
    assert f"{flops_by_time([on_eight_p100(seconds)], None):.1e}" == printed


def test_the_big_model_costs_less_than_a_quarter_of_the_best():
    """The best earlier English-French model of Table 2 by its printed BLEU, ensembles left out."""
    rows = list(csv.DictReader((ROOT / "workflow/papers/attention/table2.csv").open(encoding="utf-8")))
    priced = [row for row in rows if row["flops_enfr"] and row["bleu_enfr"] and "Ensemble" not in row["model"]]
    best = max((row for row in priced if not row["system_enfr"]), key=lambda row: float(row["bleu_enfr"]))
    assert best["model"].startswith("MoE")
    assert flops_by_time([on_eight_p100(3.5 * DAY_S)], None) < float(best["flops_enfr"]) / 4


def test_the_base_model_costs_half_of_any_earlier_model_at_most():
    rows = list(csv.DictReader((ROOT / "workflow/papers/attention/table2.csv").open(encoding="utf-8")))
    earlier = [float(row["flops_ende"]) for row in rows if row["flops_ende"] and not row["system"]]
    assert len(earlier) == 5  # ByteNet and both Deep-Att have no printed cost
    assert flops_by_time([on_eight_p100(DAY_S / 2)], None) < min(earlier) / 2


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


def curve(train, dev):
    return training_curves.LossCurve(np.arange(1, len(dev) + 1) * 10, np.array(train, float), np.array(dev, float))


def test_steps_to_a_loss_are_interpolated():
    dev = [4.0, 2.0, 1.0]
    assert [curve(dev, dev).steps_to(loss) for loss in (3.0, 1.5, 5.0, 0.5)] == [15, 25, 10, float("inf")]


def test_the_best_loss_so_far_counts_up_to_a_step():
    dev = [4.0, 2.0, 3.0]
    assert [curve(dev, dev).best_dev_within(step) for step in (15, 30, 1000)] == [3.0, 2.0, 2.0]


def test_the_gap_between_shifted_lines_is_the_shift():
    upper, lower = curve([5, 4, 3], [6.0, 5.0, 4.0]), curve([4.5, 2.5], [5.2, 3.2])
    assert training_curves.mean_gap(lower, upper) == pytest.approx(0.3)
    assert training_curves.mean_gap(upper, lower) == pytest.approx(-0.3)
    assert training_curves.mean_gap(curve([2, 1], [1, 1]), upper) is None


def test_gap_leaves_out_validations_after_a_risen_loss():
    smooth, bumpy = curve([5, 4, 3], [5.0, 4.0, 3.0]), curve([5, 5.5, 3], [5.0, 9.0, 3.0])
    assert training_curves.mean_gap(bumpy, smooth) == pytest.approx(0)


def test_branch_weights_that_change_order_are_counted_in_pairs():
    steps = np.arange(4)
    weights = np.array([[0.5, 0.3, 0.2], [0.4, 0.35, 0.25], [0.31, 0.4, 0.29], [0.25, 0.4, 0.35]])
    found = training_curves.BranchCurve("kappa", steps, weights)
    assert found.changes_of_rank() == 2  # 1 falls below 2 and below 3; 2 stays above 3
    assert found.growth == pytest.approx([0.5, 4 / 3, 1.75])
    assert found.spread() == pytest.approx(1.75 / 0.5)
    assert found.smallest_share() == pytest.approx(0.5)


def test_the_gaps_within_a_system_are_the_noise_of_its_curves():
    curves = [curve([5, 4, 3], [6.0 + noise, 5.0 + noise, 4.0 + noise]) for noise in (0.1, 0.0, -0.4)]
    assert training_curves.curve_gaps(curves) == pytest.approx([0.2, 0.1, -0.3])
    assert training_curves.mean_gaps(curves, [curve([2, 1], [1, 1])]) is None


@pytest.mark.parametrize(
    ("last", "gain", "rise"), [([2.0, 2.0], 0.0, 0.0), ([2.0, 1.9], 0.05, 0.0), ([2.5, 2.1], 0.0, 0.05)]
)
def test_late_gain_and_rise_compare_the_last_fifth_with_the_best(last, gain, rise):
    """The gain is the fall of the best loss in the last fifth, the rise the last loss above the lowest."""
    found = curve([1.0] * 10, [4.0, *[2.0] * 7, *last])
    assert (found.late_gain, found.rise) == (pytest.approx(gain), pytest.approx(rise))


def test_unmeasured_loss_names_the_command_that_measures_it(tmp_path):
    with pytest.raises(UserError, match=r"; `python -m pipeline train --run '.*/my run' --restart` trains it again"):
        training_curves.with_training_losses(curve([np.nan], [2.0]), tmp_path / "my run")


def write(folder, records):
    (folder / "progress.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


@pytest.mark.parametrize(("layers", "expected"), [(1, 0.0), (2, 1.0), (3, 1.0)])
def test_second_layer_of_a_one_layer_model_is_its_last(tmp_path, layers, expected):
    values = {f"encoder.{layer}.kappa": [float(layer)] for layer in range(layers)} | {"decoder.0.kappa": [9.0]}
    write(tmp_path, [{"event": "monitor", "step": step, "values": values} for step in (0, 1)])
    for stack, weight in (("encoder", expected), ("decoder", 9.0)):
        (found,) = training_curves.branch_curves(tmp_path, 2, stack)
        assert (found.name, found.weights.tolist()) == ("kappa", [[weight]] * 2)


def test_a_missing_or_damaged_log_is_one_message(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        training_curves.loss_curve(tmp_path)
    write(tmp_path, [])
    with pytest.raises(UserError, match="no validation"):
        training_curves.loss_curve(tmp_path)
    with pytest.raises(UserError, match="branch weights of 0 steps"):
        training_curves.branch_curves(tmp_path, 2)
    (tmp_path / "progress.jsonl").write_text('{"event": "prog', encoding="utf-8")  # a last line that a crash cut
    with pytest.raises(UserError, match="no validation"):
        training_curves.loss_curve(tmp_path)
    (tmp_path / "progress.jsonl").write_text('{"event": "prog\n', encoding="utf-8")
    with pytest.raises(UserError, match=r"line 1: not valid JSON .*; remove it and train the run"):
        training_curves.loss_curve(tmp_path)
