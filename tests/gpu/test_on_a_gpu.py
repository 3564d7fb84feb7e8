"""Every command of on_a_gpu.sh names cases and tests that exist, and all fit into nine minutes."""

import os
import re
import shlex
import subprocess

import graph_checks
import measure
import pytest
import torch
import trainings

from pipeline.core.provenance import ROOT
from pipeline.training.step import StepRunner

SCRIPT = ROOT / "bench/gpu/on_a_gpu.sh"
KNOWN = {"bench/gpu/graph_checks.py": graph_checks.CASES, "bench/gpu/measure.py": measure.CASES}


@pytest.fixture(scope="module")
def commands(tmp_path_factory) -> list[tuple[int, list[str]]]:
    """Return the limit in seconds and the words of each command."""
    environment = os.environ | {"DRY": "1", "OUT": str(tmp_path_factory.mktemp("out"))}
    printed = subprocess.run(["bash", SCRIPT], env=environment, capture_output=True, text=True, check=True).stdout
    parted = (line.partition(" s: ") for line in printed.splitlines() if line.startswith(tuple("123456789")))
    return [(int(limit), shlex.split(command)) for limit, _, command in parted]


def test_commands_name_cases_that_exist(commands):
    measured = [words for _, words in commands if words[1] in KNOWN]
    assert len(measured) >= 9
    for words in measured:
        cases = words[words.index("--only") + 1 :]
        assert cases and not {*cases} - KNOWN[words[1]].keys(), words


def test_commands_choose_tests_that_exist(commands):
    chosen = [words for _, words in commands if "pytest" in words]
    assert len(chosen) == 4
    for words in chosen:
        text = (ROOT / next(word for word in words if word.startswith("tests/"))).read_text()
        tests = re.findall(r"^def (test_\w+)", text, re.MULTILINE)
        choice = words[words.index("-k") + 1] if "-k" in words else "test"
        parts = {*choice.split()} - {"and", "or", "not"}
        assert all(any(part in test for test in tests) for part in parts), words
        assert any(eval(choice, {part: part in test for part in parts}) for test in tests), words


def test_no_measurement_reaches_the_end_of_its_training(commands, monkeypatch):
    blocks = [int(words[words.index("--block") + 1]) for _, words in commands if "--block" in words]
    monkeypatch.setattr(trainings, "WORDS", 50)
    trainer = trainings.trainer_of(StepRunner, measure.TRAININGS["Weighted Transformer"], torch.device("cpu"))
    steps = measure.WARM + measure.BLOCKS * max(blocks) + 1
    assert steps < min(trainer.spec.training.max_steps, trainer.spec.training.validate_every)
    assert not trainer.optimiser.schedule.frozen(steps), "most steps move the branch weights"


def test_all_parts_end_within_nine_minutes(commands):
    together = [limit for limit, words in commands if "graph_checks" in words[1] or "pytest" in words]
    measures = [limit for limit, words in commands if "several" not in " ".join(words) and "measure" in words[1]]
    (several,) = {limit for limit, words in commands if "several" in " ".join(words)}
    assert max(together) + sum(measures) + several <= 540
