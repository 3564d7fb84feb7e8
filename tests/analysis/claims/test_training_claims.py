"""Claims about trainings: made-up logs bring out every verdict of every kind."""

import numpy as np
import pytest
from fabricated import folder_of, write_branches, write_training
from made_claims import CONTRADICTED, DATA, NOT_RUN, UNCLEAR, UPHELD, claims_of, direction, row_of, runs
from made_records import data_loss, measured_noise, start_cost, training_cost, validation_line

from pipeline.papers.project import Project

PAIR = {"system": "C", "baseline": "A"}
LOSSES = claims_of(kind="training_loss", dataset=DATA, ascending=["A", "C"])


def put_losses(project, system, dev, train, dev_noise=0.0, train_noise=0.0):
    """Train all seeds of a system to some losses, which rise with the seed by the noise."""
    for run in runs(project, system):
        losses = (np.array(dev) + dev_noise * run.seed, np.array(train) + train_noise * run.seed)
        write_training(project, run, *(values.tolist() for values in losses))


@pytest.mark.parametrize(
    ("losses", "expected"), [((1.0, 1.2), UPHELD), ((1.2, 1.0), CONTRADICTED), ((1.0, 1.02), UNCLEAR)]
)
def test_training_losses_use_run_to_run_variance(project_with, losses, expected):
    """Standard deviation 0.01 over three seeds: a difference has to exceed 0.0227 (t of 4 degrees of freedom)."""
    project = project_with(LOSSES, seeds=3)
    for system, loss in zip(("A", "C"), losses, strict=True):
        put_losses(project, system, [2.0] * 10, [loss] * 10, train_noise=0.01)
    assert direction(row_of(project)) == expected


def test_counts_of_trainings_are_tested_by_their_spread(project_with):
    """Three, four or five of six pairs are changed. By Student's t, 4 less 0.5 is 6.06 standard errors, p 0.026."""
    claim = claims_of(kind="branches", dataset=DATA, system="C", layer=1, quantity="changes_of_rank", at_least=0.5)
    project = project_with(claim, seeds=3)
    drawn = np.array([0.1, 0.2, 0.3, 0.4])
    orders = ([2, 1, 0, 3], [2, 3, 0, 1], [3, 2, 0, 1])
    for run, order in zip(runs(project, "C"), orders, strict=True):
        changed = sum(order[i] > order[j] for i in range(4) for j in range(i + 1, 4))
        assert changed == 2 + run.seed
        write_branches(project, run, np.linspace(drawn, drawn[order], 400))
    row = row_of(project)
    assert (row["verdict"], row["ours"]) == (UPHELD, "kappa 4.00, alpha 4.00")
    assert float(row["p_value"]) == pytest.approx(0.0262, abs=1e-4)


def test_training_without_a_measured_fit_does_not_count_as_run(project_with):
    project = project_with(LOSSES)
    for system in ("A", "C"):
        put_losses(project, system, [2.0], [1.0])
    log = folder_of(project, runs(project, "C")[0]) / "progress.jsonl"
    log.write_text(validation_line(step=100, dev=data_loss(2.0)).line())
    row = row_of(project)
    assert (row["verdict"], "--restart" in row["evidence"]) == (NOT_RUN, True)


@pytest.mark.parametrize(("measured", "expected"), [(None, UNCLEAR), (0.01, "provisional upheld"), (0.1, UNCLEAR)])
def test_single_seeds_use_measured_noise(project_with, monkeypatch, measured, expected):
    project = project_with(LOSSES)
    for system, loss in (("A", 1.0), ("C", 1.1)):
        put_losses(project, system, [2.0] * 10, [loss] * 10)
    if measured:
        values = (1.0 + measured * np.array([-1.0, 1.0] * 10)).tolist()
        monkeypatch.setattr(Project, "noise_of", lambda project, family: measured_noise(training_loss=values))
    row = row_of(project)
    assert row["verdict"] == expected
    assert ("20 trainings of toy/system at scale demo" in row["test"]) == bool(measured)


@pytest.mark.parametrize(
    ("dev", "expected", "ours"),
    [
        ([3.0, 2.0, 1.5], UPHELD, "after 20% of its steps, 67% of its time"),
        ([4.0, 3.5, 3.0], CONTRADICTED, "not reached"),
        ([4.0, 3.0, 2.0], UNCLEAR, "after 30% of its steps"),
        ([4.0, 3.5, 3.0, 1.0], CONTRADICTED, "after 35% of its steps"),
    ],
)
def test_a_loss_is_reached_within_a_share_of_the_steps(project_with, dev, expected, ours):
    """The baseline ends at 2.0 after 1000 updates; 30 % of them are allowed."""
    project = project_with(claims_of(kind="steps", dataset=DATA, **PAIR, share=0.3), seeds=3)
    put_losses(project, "A", [4, 3, *[2] * 8], [1.0] * 10, dev_noise=-0.01)
    put_losses(project, "C", dev, [1.0] * len(dev), dev_noise=-0.01)
    row = row_of(project)
    assert direction(row) == expected
    assert ours in row["ours"]


@pytest.mark.parametrize(("later", "verdict"), [([1.5] * 7, UNCLEAR), ([], "provisional upheld")])
def test_single_seeds_decide_nothing_before_the_last_step(project_with, monkeypatch, later, verdict):
    """Noise was measured at the end of trainings; at a third of them it is more than twice as large."""
    project = project_with(claims_of(kind="steps", dataset=DATA, **PAIR, share=0.3))
    for system, dev in (("A", [4, 3, *[2] * 8]), ("C", [3.0, 2.0, 1.5, *later])):
        put_losses(project, system, dev, [1.0] * len(dev))
    values = (1.0 + 0.01 * np.array([-1.0, 1.0] * 10)).tolist()
    monkeypatch.setattr(Project, "noise_of", lambda project, family: measured_noise(dev_loss=values))
    row = row_of(project)
    assert (row["verdict"], "20% of its steps" in row["ours"]) == (verdict, True)


@pytest.mark.parametrize(
    ("last", "expected"), [([2.3, 2.2, 2.1], "not trained far enough"), ([2.1, 2.1, 2.1], CONTRADICTED)]
)
def test_a_system_stopped_while_it_learns_contradicts_no_steps(project_with, last, expected):
    """The baseline ends at 2.0 after 1000 steps; the system has 850 of them, but was trained for 600."""
    project = project_with(claims_of(kind="steps", dataset=DATA, **PAIR, share=0.85), seeds=3)
    put_losses(project, "A", [4, 3, *[2] * 8], [1.0] * 10, dev_noise=-0.01)
    put_losses(project, "C", [4.0, 3.0, 2.5, *last], [1.0] * 6, dev_noise=-0.01)
    assert direction(row_of(project)) == expected


@pytest.mark.parametrize(("reached", "expected"), [(2.0, UNCLEAR), (1.9, UPHELD), (2.1, CONTRADICTED)])
def test_steps_of_an_overfitted_baseline_end_at_its_lowest(project_with, reached, expected):
    """Its loss is 2.0 at 50 to 80 % of its steps and 2.08 at the end, which its own curve passes sooner."""
    project = project_with(claims_of(kind="steps", dataset=DATA, **PAIR, share=0.85), seeds=3)
    for system, loss in (("A", 2.0), ("C", reached)):
        put_losses(project, system, [4.0, 3.0, 2.5, 2.2, *[loss] * 4, loss + 0.04, loss + 0.08], [1.0] * 10, 0.01)
    row = row_of(project)
    assert direction(row) == expected
    assert float(row["value"]) == pytest.approx(2.0 - reached, abs=1e-9)


@pytest.mark.parametrize(
    ("ours", "expected", "said"),
    [
        ([4.0, 2.5, *[2.5] * 8], UPHELD, "C after 199 steps, A after 599"),
        ([4.0, 3.8, 3.6, 3.4, 3.2, 3.0, 2.8, 2.5, 2.5, 2.5], CONTRADICTED, "C after 796 steps, A after 599"),
    ],
)
def test_steps_to_plateau_do_not_depend_on_its_height(project_with, ours, expected, said):
    """The baseline falls to 2.0 at update 600, the system to 2.5 at 200 or 800; to half a per cent more just before,
    when exactly depends on the seed."""
    project = project_with(claims_of(kind="own_plateaus", dataset=DATA, **PAIR, share=0.85), seeds=3)
    for system, losses in (("A", [4.0, 3.5, 3.2, 3.0, 2.8, *[2.0] * 5]), ("C", ours)):
        put_losses(project, system, losses, [1.0] * 10, dev_noise=0.01 * (np.array(losses) > min(losses)))
    row = row_of(project)
    assert direction(row) == expected
    assert said in row["ours"]


def test_share_of_steps_is_of_the_mean_of_stopped_trainings(project_with):
    """300 steps are half of the mean of 400, 600 and 800; the system's loss falls by 0.2 in each 100.

    Each of its trainings takes 3 s, each of the others 10 s.
    """
    project = project_with(claims_of(kind="steps", dataset=DATA, **PAIR, share=0.5), seeds=3)
    put_timed_training(project, "C", [3.0, 2.8, 2.6, 2.4, 2.2, 2.0], 3.0)
    for run, validations in zip(runs(project, "A"), (4, 6, 8), strict=True):
        write_training(project, run, [2.5 + 0.01 * run.seed] * validations, [1.0] * validations)
    row = row_of(project)
    assert float(row["value"]) == pytest.approx(2.5 - 2.6)
    assert "after 59% of its steps, 18% of its time" in row["ours"]


def test_steps_cannot_be_counted_without_a_validation_in_time(project_with):
    project = project_with(claims_of(kind="steps", dataset=DATA, **PAIR, share=0.3))
    for system in ("A", "C"):
        put_losses(project, system, [2.0], [1.0])
    assert row_of(project)["verdict"] == NOT_RUN


def test_seeds_without_common_training_loss_have_no_noise(project_with):
    """One seed got stuck above where the other began, so that their gap is not known; the baseline's pass both."""
    project = project_with(claims_of(kind="curves", dataset=DATA, **PAIR), seeds=2)
    for run, losses in zip(runs(project, "C"), ([5.0, 4.0, 3.0], [8.0, 7.0, 6.0]), strict=True):
        write_training(project, run, [2.0] * 3, losses)
    for run in runs(project, "A"):
        write_training(project, run, [3.0, 2.5 + 0.01 * run.seed, 2.5, 2.5], [9.0, 5.5, 4.5, 2.0])
    row = row_of(project)
    assert (row["verdict"], row["ours"]) == (UNCLEAR, "the curves have no training loss in common")


@pytest.mark.parametrize(
    ("shift", "expected"), [(-0.2, UPHELD), (0.2, CONTRADICTED), (-0.04, UNCLEAR), (None, UNCLEAR)]
)
def test_curves_at_equal_training_loss_use_gaps_within_a_system(project_with, shift, expected):
    """Curves of one system lie 0.02 and 0.04 apart: of standard deviation 0.02, so that 0.045 has to be passed."""
    project = project_with(claims_of(kind="curves", dataset=DATA, **PAIR), seeds=3)
    train = np.array([5.0, 4.0, 3.0, *[2.0] * 7])
    put_losses(project, "A", 0.5 * train + 2, train, dev_noise=0.02)
    if shift is None:
        put_losses(project, "C", 0.5 * train + 2, train + 10, dev_noise=0.02)
    else:
        put_losses(project, "C", 0.5 * (train - 0.5) + 2 + shift, train - 0.5, dev_noise=0.02)
    row = row_of(project)
    assert direction(row) == expected
    if shift is not None:
        assert row["ours"] == f"mean gap {-shift:+.3f} nats"


SPREAD = {"quantity": "spread", "at_least": 1.2, "at_most": 2.5}
RANKS = {"quantity": "changes_of_rank", "at_least": 0.5}
SHARE = {"quantity": "smallest_share", "at_least": 0.1}


@pytest.mark.parametrize(
    ("claim", "factors", "noise", "expected"),
    [
        *((SPREAD, (1, 1.5), 0.01, UPHELD), (SPREAD, (1, 1.05), 0.01, CONTRADICTED)),
        *((RANKS, (1 / 3, 3), 0, UNCLEAR), (RANKS, (1, 1), 0, UNCLEAR)),
        *((SHARE, (1, 0.5), 0.001, UPHELD), (SHARE, (1, 0.01), 0.001, CONTRADICTED)),
    ],
)
def test_branch_weights_are_compared_with_their_draw(project_with, claim, factors, noise, expected):
    """The draw itself differs by a factor of three, of which nothing counts. Of two branches there is one pair, whose
    order is lost, or kept, in three of three trainings once in four times by chance alone."""
    project = project_with(claims_of(kind="branches", dataset=DATA, system="C", layer=2, **claim), seeds=3)
    for run in runs(project, "C"):
        drawn = np.array([0.75, 0.25]) + 0.002 * run.seed * np.array([-1, 1])
        write_branches(project, run, np.linspace(drawn, drawn * np.add(factors, (0, noise * run.seed)), 400))
    assert row_of(project)["verdict"] == expected


def test_branch_log_must_start_with_the_draw(project_with):
    claim = claims_of(kind="branches", dataset=DATA, system="C", layer=1, quantity="spread", at_least=1.2)
    project = project_with(claim, seeds=3)
    for run in runs(project, "C"):
        write_branches(project, run, np.array([[0.75, 0.25], [0.5, 0.5]]), first=300)
    row = row_of(project)
    assert row["verdict"] == NOT_RUN and "before initial weights were logged" in row["evidence"]


def put_timed_training(project, system, dev, seconds, device="toy processor", **cost):
    put_losses(project, system, dev, [1.0] * len(dev), dev_noise=0.01)
    for run in runs(project, system):
        training_cost(start_cost(seconds=seconds, device=device, **cost)).write(folder_of(project, run) / "cost.json")


@pytest.mark.parametrize(
    ("baseline", "expected"),
    [([3.0, 2.8, 2.6, 1.0], UPHELD), ([2.0, 1.5, 1.2, 1.0], CONTRADICTED), ([3.0, 2.0, 1.5, 1.0], UNCLEAR)],
)
def test_equal_time_is_the_end_of_the_shorter_training(project_with, baseline, expected):
    """The system's 20 s are half of the baseline's, which gets lower in the end; at half it had its second loss."""
    project = project_with(claims_of(kind="equal_time", dataset=DATA, **PAIR), seeds=3)
    put_timed_training(project, "C", [3.0, 2.0], 20.0)
    assert row_of(project)["verdict"] == NOT_RUN
    put_timed_training(project, "A", baseline, 40.0)
    row = row_of(project)
    assert direction(row) == expected
    assert row["ours"] == f"C and A: 2.020 and {baseline[1] + 0.02:.3f} nats after 20 s (trained for 20 and 40 s)"


@pytest.mark.parametrize("counted", [True, False])
def test_equal_time_is_cpu_time_of_kept_steps(project_with, counted):
    """C took 180 s for three times its 200 steps, with two threads of 60 s; A took 60 s, with one of 40 s."""
    project = project_with(claims_of(kind="equal_time", dataset=DATA, **PAIR), seeds=3)
    used = {"C": {"processor_seconds": 120.0, "threads": 2}, "A": {"processor_seconds": 40.0}}
    put_timed_training(project, "C", [3.0, 2.0], 180.0, steps=600, **used["C"])
    put_timed_training(project, "A", [3.0, 2.0, 1.5, 1.0], 60.0, steps=400, **used["A"] if counted else {})
    baseline, unit = (
        (2.02, "20 s of CPU time per thread (trained for 20 and 40 s)")
        if counted
        else (1.02, "60 s (trained for 60 and 60 s)")
    )
    assert row_of(project)["ours"] == f"C and A: 2.020 and {baseline:.3f} nats after {unit}"


def test_equal_time_needs_equal_hardware_and_a_validation(project_with):
    project = project_with(claims_of(kind="equal_time", dataset=DATA, **PAIR))
    put_timed_training(project, "C", [3.0, 2.0], 20.0, device="another")
    put_timed_training(project, "A", [3.0, 2.0], 20.0)
    assert row_of(project)["evidence"] == "trained on different hardware: 1 x another, 1 x toy processor"
    put_timed_training(project, "C", [3.0], 2.0)
    row = row_of(project)
    assert row["verdict"] == NOT_RUN
    assert row["evidence"] == "A was not validated in the first 20 steps", "as many as in 2 s"
