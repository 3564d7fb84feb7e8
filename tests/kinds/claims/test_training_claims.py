"""Claims about trainings: made-up logs bring out every verdict of every kind."""

import numpy as np
import pytest
import yaml
from fabricated import folder_of, write_branches, write_training
from made_claims import CONTRADICTED, DATA, NOT_RUN, UNCLEAR, UPHELD, claims_of, row_of, runs
from made_records import data_loss, start_cost, training_cost, validation_line

from pipeline.config import load_run


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize(("losses", "expected"), [((1.0, 1.2), UPHELD), ((1.2, 1.0), CONTRADICTED)])
def test_training_losses_are_compared_by_seed(project_with, losses, expected, seeds):
    project = project_with(claims_of(kind="training_loss", dataset=DATA, ascending=["A", "C"]), seeds=seeds)
    for system, loss in zip(("A", "C"), losses, strict=True):
        for run in runs(project, system):
            write_training(project, run, [2.0], [loss + 0.01 * run.seed])
    assert row_of(project)["verdict"] == expected


def test_trainings_whose_fit_was_not_measured_do_not_count_as_run(project_with):
    project = project_with(claims_of(kind="training_loss", dataset=DATA, ascending=["A", "C"]))
    for system in ("A", "C"):
        write_training(project, runs(project, system)[0], [2.0], [1.0])
    log = folder_of(project, runs(project, "C")[0]) / "progress.jsonl"
    log.write_text(validation_line(step=100, dev=data_loss(2.0)).line())
    row = row_of(project)
    assert (row["verdict"], "--restart" in row["evidence"]) == (NOT_RUN, True)


def test_losses_of_single_trainings_that_hardly_differ_are_not_told_apart(project_with):
    project = project_with(claims_of(kind="training_loss", dataset=DATA, ascending=["A", "C"]))
    for system, loss in (("A", 1.0), ("C", 1.009)):
        write_training(project, runs(project, system)[0], [2.0], [loss])
    assert row_of(project)["verdict"] == UNCLEAR


@pytest.mark.parametrize(
    ("dev", "expected", "ours"),
    [
        ([3.0, 2.0, 1.5], UPHELD, "after 20% of its steps"),
        ([4.0, 3.5, 3.0], CONTRADICTED, "not reached"),
        ([4.0, 3.0, 2.0], UNCLEAR, "after 30% of its steps"),
    ],
)
def test_a_loss_is_reached_within_a_share_of_the_steps(project_with, dev, expected, ours):
    """The baseline ends at 2.0 after 1000 updates; 30 % of them are allowed."""
    project = project_with(claims_of(kind="steps", dataset=DATA, system="C", baseline="A", share=0.3))
    write_training(project, runs(project, "A")[0], np.linspace(4.0, 2.0, 10).tolist(), [1.0] * 10)
    write_training(project, runs(project, "C")[0], dev, [1.0] * 3)
    row = row_of(project)
    assert row["verdict"] == expected
    assert ours in row["ours"]


def test_steps_cannot_be_counted_without_a_validation_in_time(project_with):
    project = project_with(claims_of(kind="steps", dataset=DATA, system="C", baseline="A", share=0.3))
    for system in ("A", "C"):
        write_training(project, runs(project, system)[0], [2.0], [1.0])
    assert row_of(project)["verdict"] == NOT_RUN


@pytest.mark.parametrize(("shift", "expected"), [(-0.2, UPHELD), (0.2, CONTRADICTED), (None, UNCLEAR)])
def test_curves_are_compared_at_equal_training_loss(project_with, shift, expected):
    project = project_with(claims_of(kind="curves", dataset=DATA, system="C", baseline="A"))
    train = np.array([5.0, 4.0, 3.0, 2.0])
    write_training(project, runs(project, "A")[0], (0.5 * train + 2).tolist(), train.tolist())
    other = train - 0.5 if shift is not None else train + 10
    write_training(project, runs(project, "C")[0], (0.5 * other + 2 + (shift or 0)).tolist(), other.tolist())
    row = row_of(project)
    assert row["verdict"] == expected
    if shift is not None:
        assert row["ours"] == f"mean gap {-shift:+.3f} nats"


BRANCHES = {
    "spread": [(1.5, UPHELD), (1.05, CONTRADICTED)],
    "changes_of_rank": [(True, UPHELD), (False, CONTRADICTED)],
    "smallest_share": [(0.5, UPHELD), (0.01, CONTRADICTED)],
}
BOUNDS = {"spread": {"at_least": 1.2, "at_most": 2.5}, "changes_of_rank": {"at_least": 0.5}}


@pytest.mark.parametrize(
    ("quantity", "value", "expected"), [(q, *case) for q, cases in BRANCHES.items() for case in cases]
)
def test_branch_weights_are_judged_by_their_course(project_with, monkeypatch, quantity, value, expected):
    bounds = BOUNDS.get(quantity, {"at_least": 0.1})
    claim = claims_of(kind="branches", dataset=DATA, system="C", layer=2, quantity=quantity, **bounds)
    project = project_with(claim)
    (run,) = runs(project, "C")
    match quantity:
        case "spread":
            last = np.array([value, 1.0])
        case "changes_of_rank":
            last = np.array([0.4, 0.6]) if value else np.array([0.6, 0.4])
        case _:
            last = np.array([value / 2, 1 - value / 2])
    first = np.array([0.7, 0.3]) if quantity == "changes_of_rank" else np.array([0.5, 0.5])
    write_branches(project, run, np.linspace(first, last / last.sum(), 400))
    folder_of(project, run).joinpath("run.yaml").write_text(
        yaml.safe_dump(project.run_spec(run).model_dump()), encoding="utf-8"
    )
    assert load_run(folder_of(project, run) / "run.yaml").training.branch_warmup_steps is not None
    assert row_of(project)["verdict"] == expected


def put_timed_training(project, system, dev, seconds, device="toy processor"):
    (run,) = runs(project, system)
    write_training(project, run, dev, [1.0] * len(dev))
    training_cost(start_cost(seconds=seconds, device=device)).write(folder_of(project, run) / "cost.json")


@pytest.mark.parametrize(
    ("baseline", "expected"),
    [([3.0, 2.8, 2.6, 1.0], UPHELD), ([2.0, 1.5, 1.2, 1.0], CONTRADICTED), ([3.0, 2.0, 1.5, 1.0], UNCLEAR)],
)
def test_losses_are_compared_at_the_time_at_which_the_shorter_training_ended(project_with, baseline, expected):
    """The system's 20 s are half of the baseline's, which gets lower in the end; at half it had its second loss."""
    project = project_with(claims_of(kind="equal_time", dataset=DATA, system="C", baseline="A"))
    put_timed_training(project, "C", [3.0, 2.0], 20.0)
    assert row_of(project)["verdict"] == NOT_RUN
    put_timed_training(project, "A", baseline, 40.0)
    row = row_of(project)
    assert row["verdict"] == expected
    assert row["ours"] == f"C and A: 2.000 and {baseline[1]:.3f} nats after 20 s (trained for 20 and 40 s)"


def test_times_are_compared_on_equal_hardware_and_after_a_validation(project_with):
    project = project_with(claims_of(kind="equal_time", dataset=DATA, system="C", baseline="A"))
    put_timed_training(project, "C", [3.0, 2.0], 20.0, device="another")
    put_timed_training(project, "A", [3.0, 2.0], 20.0)
    assert row_of(project)["evidence"] == "trained on different hardware: 1 x another, 1 x toy processor"
    put_timed_training(project, "C", [3.0], 2.0)
    row = row_of(project)
    assert (row["verdict"], row["evidence"]) == (NOT_RUN, "not both were validated in the first 2 s of training")
