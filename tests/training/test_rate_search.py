"""Random search of a learning rate: draws, trials and their order."""

import csv
import math

import pytest
import yaml

from pipeline.__main__ import main
from pipeline.core.records.training import TrainedRun
from pipeline.training import rate_search
from pipeline.training.guards import Diverged

FIXED = ["--lowest", "0.01", "--highest", "10", "--steps", "4", "--device", "cpu", "--threads", "1"]


def search(run, out, *more):
    return main(["search-rate", "--run", str(run), "--out", str(out), *FIXED, *more])


def rows_of(out):
    return list(csv.DictReader(out.open(encoding="utf-8")))


def test_trials_are_ranked_by_their_own_best_dev_loss(new_run, tmp_path):
    run, out = new_run(), tmp_path / "rates.csv"
    assert search(run, out, "--trials", "3") == 0
    rows = rows_of(out)
    assert [float(row["best_dev_loss"]) for row in rows] == sorted(float(row["best_dev_loss"]) for row in rows)
    assert len({row["lr_factor"] for row in rows}) == 3
    for row in rows:
        spec = yaml.safe_load((tmp_path / row["folder"] / "run.yaml").read_text())
        done = TrainedRun.read(tmp_path / row["folder"] / "done.json")
        assert (spec["training"]["lr_factor"], spec["training"]["max_steps"]) == (float(row["lr_factor"]), 4)
        assert done.steps == 4
        assert float(row["best_dev_loss"]) == pytest.approx(done.best_dev.nll_per_token)
    assert not (run / "done.json").exists()


def test_more_trials_keep_those_that_are_done(new_run, tmp_path):
    run, out = new_run(schedule="constant", lr=0.001), tmp_path / "rates.csv"
    assert search(run, out, "--trials", "1") == 0
    (first,) = rows_of(out)
    done = tmp_path / first["folder"] / "done.json"
    before = done.stat().st_mtime_ns
    assert search(run, out, "--trials", "2") == 0
    assert first in rows_of(out) and len(rows_of(out)) == 2
    assert done.stat().st_mtime_ns == before


def test_draws_are_uniform_in_their_logarithm(new_run, tmp_path, monkeypatch):
    """A Kolmogorov-Smirnov distance below 1.63 / sqrt(n), which one sample in a hundred exceeds."""
    monkeypatch.setattr(rate_search, "trained", lambda folder, options: {"best_dev_loss": 1.0, "step": 1})
    out = tmp_path / "rates.csv"
    assert search(new_run(), out, "--trials", "200") == 0
    shares = sorted(math.log(float(row["lr_factor"]) / 0.01) / math.log(1000) for row in rows_of(out))
    assert max(abs(share - (i + 0.5) / 200) for i, share in enumerate(shares)) < 1.63 / 200**0.5


def test_a_trial_that_diverges_is_last(new_run, tmp_path, monkeypatch):
    real = rate_search.train_owned
    seen = []

    def train(folder, options):
        seen.append(folder)
        if len(seen) == 1:
            raise Diverged("loss or gradient is not finite")
        real(folder, options)

    monkeypatch.setattr(rate_search, "train_owned", train)
    out = tmp_path / "rates.csv"
    assert search(new_run(), out, "--trials", "2") == 0
    rows = rows_of(out)
    assert rows[-1]["best_dev_loss"] == "inf" and math.isfinite(float(rows[0]["best_dev_loss"]))


def test_an_empty_range_is_refused(new_run, tmp_path, capsys):
    out = tmp_path / "rates.csv"
    assert search(new_run(), out, "--lowest", "20") == 1
    assert "--lowest 20 --highest 10: name two numbers above 0, the lower one first" in capsys.readouterr().err
    assert not out.exists()
