"""Demands of every training and decoding on a GPU, counted without one, stay within budgets.csv.

A case that asks for less than its budget is a reason to lower that: count.py writes the table.
"""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cases import DECODINGS, TRAININGS
from forecasts import forecast_ms
from real_project import project_at
from roofline import CARDS

from pipeline.core.artifacts import RunId
from pipeline.planning.devices import launches

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests/helpers'}:{FOLDER}"}
SLACK = 1.05
BUDGETED = ("launches", "waits", "unpinned copies", "GB moved", "GiB saved")
BUDGETS = {row.pop("case"): row for row in csv.DictReader((FOLDER / "budgets.csv").read_text().splitlines())}


@pytest.fixture(scope="module")
def counted() -> dict[str, dict[str, str]]:
    done = subprocess.run([sys.executable, FOLDER / "count.py"], env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return {row.pop("case"): row for row in csv.DictReader(done.stdout.splitlines())}


@pytest.mark.parametrize("case", [*TRAININGS, *DECODINGS])
@pytest.mark.slow
def test_a_case_stays_within_its_budget(counted, case):
    over = {
        what: f"{counted[case][what]}, budget {budget}"
        for what, budget in BUDGETS[case].items()
        if what in BUDGETED and float(counted[case][what]) > float(budget) * SLACK
    }
    assert not over


@pytest.mark.slow
def test_only_speech_trainings_have_sums_without_a_fixed_order(counted):
    speech = {"CTC", "CTC and attention", "attention recogniser", "Cold Fusion"}
    assert {case for case in TRAININGS if counted[case]["no fixed order"]} == speech


@pytest.mark.slow
def test_every_operator_on_the_way_has_a_kernel_for_gpus(counted):
    assert {case: found["without CUDA"] for case, found in counted.items() if found["without CUDA"]} == {}


@pytest.mark.slow
@pytest.mark.parametrize("case", [name for name, training in TRAININGS.items() if training.micro_batches == 1])
def test_a_forecast_takes_as_many_launches_as_were_counted(counted, case):
    project, training = project_at(Path("work"), scale="paper"), TRAININGS[case]
    spec = project.run_spec(RunId(*training.system.split("/"), "wmt14-en-de", 1))
    assert launches(spec, training.src, training.tgt) == pytest.approx(float(counted[case]["launches"]), rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("case", TRAININGS)
def test_planned_step_time_matches_the_counted_kernels(counted, case, card):
    eager = forecast_ms(case, card, graphs=False)  # as it was counted
    assert eager == pytest.approx(float(counted[case][f"ms {card}"]), rel=0.2)


@pytest.mark.slow
def test_step_statistics_are_read_after_the_next_step_is_queued(counted):
    for case in TRAININGS:
        assert counted[case]["queued at the wait"] == counted[case]["launches"]


@pytest.mark.slow
def test_cases_are_measured_on_a_device_beside_what_was_counted(tmp_path):
    options = ["--device", "cpu", "--csv", tmp_path / "steps.csv", "--block", "2"]
    options += ["--only", "CTC and attention", "joint search"]
    command = [sys.executable, ROOT / "bench/gpu/measure.py", *options]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [*csv.DictReader((tmp_path / "steps.csv").read_text().splitlines())]
    assert [row["case"] for row in rows] == ["CTC and attention", "joint search"]
    assert all(0 < float(row["ms"]) <= float(row["median ms"]) and not row["failure"] for row in rows)
    for case in ("CTC and attention", "joint search"):
        launches = BUDGETS[case]["launches"]
        (row,) = re.findall(
            rf"^\| {case} \| {launches} \| 0 \| [0-9.]+ \| ([0-9.]+) \| ([0-9.]+) \| 0.00 \|$", done.stdout, re.M
        )
        assert 0 < float(row[0]) <= float(row[1])
