"""Learning-rate schedules, and the search for a learning rate."""

import csv
import itertools
import math
import os
import random
from pathlib import Path
from unittest.mock import Mock

import pytest
import scipy.stats
from made_records import training_config
from run_folders import change_settings

from pipeline.__main__ import main
from pipeline.config import load_run
from pipeline.core.records.training import TrainedRun
from pipeline.models.weighted_transformer.settings import WeightedTransformerConfig
from pipeline.training import job, rate_search
from pipeline.training.guards import Diverged
from pipeline.training.optimiser import Schedule


def schedule(d_model: int = 8, num_layers: int = 1, **training) -> Schedule:
    shape = {"num_layers": num_layers, "d_model": d_model, "d_ff": 8, "num_heads": 1, "d_k": 1, "d_v": 1}
    model = WeightedTransformerConfig(architecture="weighted_transformer", **shape)
    usual = {"schedule": "inverse_sqrt", "lr": None, "max_steps": 60000, "warmup_steps": 4000, "tokens_per_update": 1}
    return Schedule(model, training_config(**usual | training))


def test_the_rate_is_equation_3_of_attention_is_all_you_need():
    d_model, warmup_steps, step_num = random.randint(1, 2000), random.randint(1, 9000), random.randint(1, 50000)
    rate = schedule(d_model, warmup_steps=warmup_steps).weights(step_num - 1)
    assert rate == pytest.approx(d_model**-0.5 * min(step_num**-0.5, step_num * warmup_steps**-1.5), rel=1e-12)


@pytest.mark.parametrize(
    ("d_model", "num_layers", "peak"), [(512, 2, 3.13e-3), (512, 6, 5.41e-3), (512, 8, 6.25e-3), (1024, 6, 3.83e-3)]
)
def test_kappa_and_alpha_have_the_printed_peaks_at_update_400(d_model, num_layers, peak):
    printed = schedule(d_model, num_layers, branch_warmup_steps=400)
    assert printed.branch_weights(399) == pytest.approx(peak, rel=2e-3)
    assert printed.branch_weights(398) < printed.branch_weights(399) > printed.branch_weights(400)


def test_each_learning_rate_has_its_own_factor():
    plain = schedule(512, 6, branch_warmup_steps=400)
    other = schedule(512, 6, branch_warmup_steps=400, lr_factor=2, branch_lr_factor=0.5)
    assert other.weights(77) == 2 * plain.weights(77)
    assert other.branch_weights(77) == 0.5 * plain.branch_weights(77)


def test_branch_weights_are_frozen_in_exactly_the_last_updates():
    for freeze in (7, 0):
        frozen = [schedule(max_steps=30, branch_freeze_steps=freeze).frozen(update) for update in range(30)]
        assert frozen == [False] * (30 - freeze) + [True] * freeze


def plateau(**training) -> Schedule:
    return schedule(schedule="plateau", lr=0.25, **training)


def rates(found: Schedule, losses: list[float]) -> list[float]:
    """The rate after each validation."""
    annealings, best, seen = 0, float("inf"), []
    for loss in losses:
        annealings = found.annealings(annealings, loss < best)
        best = min(best, loss)
        seen.append(found.weights(random.randint(0, 10**6), annealings))
    return seen


def test_a_constant_rate_is_constant():
    constant = schedule(schedule="constant", lr=0.1)
    assert {constant.weights(random.randint(0, 10**6)) for _ in range(9)} == {0.1}
    assert rates(constant, [3.0, 4.0, 5.0]) == [0.1] * 3 and not constant.finished(0)


@pytest.mark.parametrize(
    ("settings", "losses", "expected"),
    [
        ({"plateau_factor": 0.5}, [3.0, 2.0, 2.5, 2.0, 1.9], [0.25, 0.25, 0.125, 0.0625, 0.0625]),
        (
            {"plateau_factor": 0.1, "plateau_annealing": "fast"},
            [3.0, 2.0, 2.5, 1.5, 1.4],
            [0.25, 0.25, 0.025, 0.0025, 0.00025],
        ),
    ],
    ids=["slow", "fast"],
)
def test_plateau_lowers_the_rate_without_a_new_best(settings, losses, expected):
    """A fast one lowers it after every validation, once there was none."""
    assert rates(plateau(**settings), losses) == pytest.approx(expected)


def test_cosine_schedule_warms_up_then_decays_to_zero_after_end():
    found = schedule(schedule="cosine", lr=0.2, warmup_steps=4, max_steps=11)
    rising, falling = [0.05, 0.1, 0.15, 0.2], [0.1 * (1 + math.cos(math.pi * n / 8)) for n in range(1, 8)]
    assert [found.weights(update) for update in range(11)] == pytest.approx(rising + falling)
    assert 0 < found.weights(10) < 0.01 and found.weights(7) == pytest.approx(0.1)


def test_a_plateau_ends_the_training_below_its_lowest_rate():
    """Convolutional Sequence to Sequence Learning, section 4.2: by ten from 0.25 until below 1e-4."""
    found = plateau(plateau_factor=0.1, min_lr=1e-4)
    assert [found.finished(annealings) for annealings in range(5)] == [False, False, False, False, True]
    assert not plateau(plateau_factor=0.1).finished(99)


@pytest.mark.parametrize(
    ("faulty", "told"),
    [
        ({"schedule": "plateau"}, "plateau needs lr"),
        ({"schedule": "constant"}, "constant needs lr"),
        ({"warmup_steps": None}, "inverse_sqrt needs warmup_steps"),
        ({"sentences_per_update": 3}, "exactly one"),
        ({"tokens_per_update": None}, "exactly one"),
    ],
)
def test_a_schedule_without_what_it_needs_is_refused(faulty, told):
    with pytest.raises(ValueError, match=told):
        schedule(**faulty)


def search(run: Path, *more: str) -> list[dict[str, str]]:
    """Search the learning rate of a run and return the rows of the table beside it."""
    out = run.with_name("rates.csv")
    fixed = ["--lowest", "0.01", "--highest", "10", "--steps", "2", "--device", "cpu", "--threads", "1"]
    assert main(["search-rate", "--run", str(run), "--out", str(out), *fixed, *more]) == 0
    return list(csv.DictReader(out.open(encoding="utf-8")))


def test_trials_are_ranked_by_their_own_best_dev_loss(new_run, tmp_path):
    run = new_run()
    rows = search(run, "--trials", "3")
    assert [float(row["best_dev_loss"]) for row in rows] == sorted(float(row["best_dev_loss"]) for row in rows)
    assert len({row["lr_factor"] for row in rows}) == 3
    for row in rows:
        training = load_run(tmp_path / row["folder"] / "run.yaml").training
        done = TrainedRun.read(tmp_path / row["folder"] / "done.json")
        assert (training.lr_factor, training.max_steps, done.steps) == (float(row["lr_factor"]), 2, 2)
        assert float(row["best_dev_loss"]) == pytest.approx(done.best_dev.nll_per_token)
    assert not (run / "done.json").exists()


@pytest.mark.parametrize(("steps", "frozen", "left"), [(9, 3, 0), (4, 3, 1), (2, 1, 1), (1, 1, 1)])
def test_trials_freeze_branch_weights_as_early_as_the_run(new_run, tmp_path, monkeypatch, steps, frozen, left):
    monkeypatch.setattr(rate_search, "trained", lambda folder, options: {"best_dev_loss": 1.0, "step": 1})
    weighted = {"architecture": "weighted_transformer", "branch_warmup_steps": 1}
    (row,) = search(new_run(**weighted, max_steps=steps, branch_freeze_steps=frozen), "--trials", "1")
    training = load_run(tmp_path / row["folder"] / "run.yaml").training
    assert (training.max_steps, training.branch_freeze_steps) == (2, left)


def test_more_trials_keep_those_that_are_done(new_run, tmp_path):
    run = new_run(schedule="constant", lr=0.001)
    (first,) = search(run, "--trials", "1")
    done = tmp_path / first["folder"] / "done.json"
    before = done.stat().st_mtime_ns
    rows = search(run, "--trials", "2")
    assert first in rows and len(rows) == 2
    assert done.stat().st_mtime_ns == before


def test_trials_of_a_run_with_relative_paths_find_its_corpus(new_run, copy_corpus, tmp_path, monkeypatch):
    """Paths in `run.yaml` are relative to its own folder, and trials lie elsewhere."""
    run = new_run()
    change_settings(run, corpus=os.path.relpath(copy_corpus, run))
    monkeypatch.chdir(tmp_path)
    options = ["--lowest", "0.1", "--highest", "1", "--trials", "1", "--steps", "1", "--device", "cpu"]
    assert main(["search-rate", "--run", run.name, *options, "--out", "tables/rates.csv"]) == 0
    assert len(list(tmp_path.glob("tables/rates-trials/*/done.json"))) == 1


def test_draws_are_uniform_in_their_logarithm(new_run, monkeypatch):
    """A Kolmogorov-Smirnov distance below 1.63 / sqrt(n), which one sample in a hundred exceeds."""
    monkeypatch.setattr(rate_search, "trained", lambda folder, options: {"best_dev_loss": 1.0, "step": 1})
    rows = search(new_run(), "--trials", "100")
    shares = [math.log(float(row["lr_factor"]) / 0.01) / math.log(1000) for row in rows]
    assert scipy.stats.kstest(shares, "uniform").statistic < 1.63 / 100**0.5


def test_a_trial_that_diverges_is_last(new_run, monkeypatch):
    real, numbers = job.train_owned, itertools.count()

    def train(folder, options):
        if next(numbers) == 0:
            raise Diverged("loss or gradient is not finite")
        real(folder, options)

    monkeypatch.setattr(job, "train_owned", train)
    rows = search(new_run(), "--trials", "2")
    assert rows[-1]["best_dev_loss"] == "inf" and math.isfinite(float(rows[0]["best_dev_loss"]))


def test_a_search_whose_trials_all_diverge_names_no_best_rate(new_run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(job, "train_owned", Mock(side_effect=Diverged("loss or gradient is not finite")))
    options = ["--lowest", "1", "--highest", "10", "--steps", "2", "--trials", "2", "--out", str(tmp_path / "r.csv")]
    assert main(["search-rate", "--run", str(new_run()), *options]) == 1
    said = capsys.readouterr().err
    assert "r.csv: every training diverged; lower --lowest and --highest" in said and "best" not in said


@pytest.mark.parametrize(
    ("lowest", "trials", "told"),
    [
        ("20", "1", "--lowest 20 --highest 10: name two numbers above 0, the lower one first"),
        ("1", "0", "--trials 0: train at least once"),
        ("1", "1", "--lowest 1: a training ends when its rate is below min_lr 2; raise --lowest"),
    ],
)
def test_an_empty_search_is_refused(new_run, tmp_path, capsys, lowest, trials, told):
    out = tmp_path / "rates.csv"
    options = ["--lowest", lowest, "--highest", "10", "--steps", "2", "--trials", trials, "--out", str(out)]
    run = new_run(schedule="plateau", lr=5.0, min_lr=2.0, warmup_steps=None)
    assert main(["search-rate", "--run", str(run), *options]) == 1
    assert told in capsys.readouterr().err
    assert not out.exists()
