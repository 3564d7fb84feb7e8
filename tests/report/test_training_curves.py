"""Curves are read from the progress log, and compared as claims need it."""

import json

import numpy as np
import pytest

from pipeline.analysis.training_curves import (
    BranchCurve,
    LossCurve,
    branch_curves,
    curve_gaps,
    loss_curve,
    mean_gap,
    mean_gaps,
)
from pipeline.core.errors import UserError


def curve(train, dev, every=10):
    return LossCurve(np.arange(1, len(dev) + 1) * every, np.array(train, float), np.array(dev, float))


def test_steps_to_a_loss_are_interpolated():
    dev = [4.0, 2.0, 1.0]
    assert curve(dev, dev).steps_to(3.0) == 15
    assert curve(dev, dev).steps_to(1.5) == 25
    assert curve(dev, dev).steps_to(5.0) == 10
    assert curve(dev, dev).steps_to(0.5) == float("inf")


def test_the_best_loss_so_far_counts_up_to_a_step():
    dev = [4.0, 2.0, 3.0]
    assert curve(dev, dev).best_dev_within(15) == 3.0
    assert curve(dev, dev).best_dev_within(30) == 2.0
    assert curve(dev, dev).best_dev_within(1000) == 2.0


def test_the_gap_between_shifted_lines_is_the_shift():
    upper, lower = curve([5, 4, 3], [6.0, 5.0, 4.0]), curve([4.5, 2.5], [5.2, 3.2])
    assert mean_gap(lower, upper) == pytest.approx(0.3)
    assert mean_gap(upper, lower) == pytest.approx(-0.3)
    assert mean_gap(curve([2, 1], [1, 1]), upper) is None


def test_gap_leaves_out_validations_after_a_risen_loss():
    smooth, bumpy = curve([5, 4, 3], [5.0, 4.0, 3.0]), curve([5, 5.5, 3], [5.0, 9.0, 3.0])
    assert mean_gap(bumpy, smooth) == pytest.approx(0)


def test_branch_weights_that_change_order_are_counted_in_pairs():
    steps = np.arange(4)
    weights = np.array([[0.5, 0.3, 0.2], [0.4, 0.35, 0.25], [0.31, 0.4, 0.29], [0.25, 0.4, 0.35]])
    found = BranchCurve("kappa", steps, weights)
    assert found.changes_of_rank() == 2  # 1 falls below 2 and below 3; 2 stays above 3
    assert found.growth == pytest.approx([0.5, 4 / 3, 1.75])
    assert found.spread() == pytest.approx(1.75 / 0.5)
    assert found.smallest_share() == pytest.approx(0.5)


def test_the_gaps_within_a_system_are_the_noise_of_its_curves():
    curves = [curve([5, 4, 3], [6.0 + noise, 5.0 + noise, 4.0 + noise]) for noise in (0.1, 0.0, -0.4)]
    assert curve_gaps(curves) == pytest.approx([0.2, 0.1, -0.3])
    assert mean_gaps(curves, [curve([2, 1], [1, 1])]) is None


@pytest.mark.parametrize(("last", "gain"), [([2.0, 2.0], 0.0), ([2.0, 1.9], 0.05), ([2.5, 2.1], 0.0)])
def test_progress_is_the_fall_of_the_best_loss_in_the_last_fifth(last, gain):
    assert curve([1.0] * 10, [4.0, *[2.0] * 7, *last]).late_gain == pytest.approx(gain)


@pytest.mark.parametrize(("last", "rise"), [([2.0, 2.0], 0.0), ([2.0, 1.9], 0.0), ([2.5, 2.1], 0.05)])
def test_over_fitting_is_the_last_loss_above_the_lowest(last, rise):
    assert curve([1.0] * 10, [4.0, *[2.0] * 7, *last]).rise == pytest.approx(rise)


def write(folder, records):
    (folder / "progress.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def test_second_layer_of_a_one_layer_model_is_its_last(tmp_path):
    for layers, expected in ((1, 0.0), (2, 1.0), (3, 1.0)):
        values = {f"encoder.{layer}.kappa": [float(layer)] for layer in range(layers)} | {"decoder.0.kappa": [9.0]}
        write(tmp_path, [{"event": "monitor", "step": 1, "values": values}])
        (found,) = branch_curves(tmp_path, 2)
        assert found.name == "kappa"
        assert found.weights.tolist() == [[expected]]
        (found,) = branch_curves(tmp_path, 2, "decoder")
        assert (found.name, found.weights.tolist()) == ("kappa", [[9.0]])


def test_a_missing_or_damaged_log_is_one_message(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        loss_curve(tmp_path)
    write(tmp_path, [])
    with pytest.raises(UserError, match="no validation"):
        loss_curve(tmp_path)
    with pytest.raises(UserError, match="no branch weights"):
        branch_curves(tmp_path, 2)
    (tmp_path / "progress.jsonl").write_text('{"event": "prog', encoding="utf-8")  # a last line that a crash cut
    with pytest.raises(UserError, match="no validation"):
        loss_curve(tmp_path)
    (tmp_path / "progress.jsonl").write_text('{"event": "prog\n', encoding="utf-8")
    with pytest.raises(UserError, match=r"line 1: not valid JSON .*; remove it and train the run"):
        loss_curve(tmp_path)
