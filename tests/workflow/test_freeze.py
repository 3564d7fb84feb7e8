"""The comparison of two projects' results notices each kind of change, and nothing that two equal runs differ in."""

import csv
import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from pipeline.training.tensor_file import write_tensor_file
from qa.freeze import compare, digests_of, main

RUN = "work/smoke/runs/paper/system/data/seed1-01234567"
ROWS = [{"model": "A", "bleu_ours": "20.1", "commit": "abc", "device_hours": "0.1"}]


def write_rows(path: Path, rows: list[dict[str, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def project(tmp_path) -> Path:
    """A project with one result of every kind."""
    run = tmp_path / "before" / RUN
    for folder in ("scores/final", "translations/final"):
        (run / folder).mkdir(parents=True)
    (run / "run.yaml").write_text(yaml.safe_dump({"seed": 1}))
    (run / "scores/final/test.json").write_text(json.dumps({"metrics": {"bleu": 20.0}, "inputs": {"a": "b"}}))
    np.savez(run / "scores/final/test.npz", bleu=np.arange(6.0).reshape(2, 3))
    (run / "translations/final/test.tok").write_text("ein satz\n")
    write_tensor_file(run / "model.safetensors", {"w": torch.arange(4.0)}, {"key": "k", "commit": "abc"})
    write_rows(tmp_path / "before/results/smoke/paper/table1.csv", ROWS)
    return tmp_path / "before"


@pytest.fixture
def copy(project) -> Path:
    return Path(shutil.copytree(project, project.with_name("after")))


def differences(before: Path, after: Path) -> list[str]:
    return list(compare(digests_of(before, "smoke"), digests_of(after, "smoke")))


CHANGES = {
    "settings": lambda run: (run / "run.yaml").write_text(yaml.safe_dump({"seed": 2})),
    "score": lambda run: (run / "scores/final/test.json").write_text('{"metrics": {"bleu": 20.5}}'),
    "statistics": lambda run: np.savez(run / "scores/final/test.npz", bleu=np.full((2, 3), random.random())),
    "text": lambda run: (run / "translations/final/test.tok").write_text("ein anderer satz\n"),
    "weights": lambda run: write_tensor_file(run / "model.safetensors", {"w": torch.rand(4)}, {"key": "k"}),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_change_of_each_kind_of_result_is_one_line(kind, project, copy):
    CHANGES[kind](copy / RUN)
    (line,) = differences(project, copy)
    assert line.startswith(f"differs: {kind} ")


def test_a_changed_column_of_a_table_is_named(project, copy):
    write_rows(copy / "results/smoke/paper/table1.csv", [ROWS[0] | {"bleu_ours": "20.2"}])
    assert differences(project, copy) == ["differs: report paper/table1: bleu_ours"]


def test_provenance_and_names_of_inputs_may_differ(project, copy):
    write_rows(copy / "results/smoke/paper/table1.csv", [ROWS[0] | {"commit": "def", "device_hours": "9"}])
    write_tensor_file(copy / RUN / "model.safetensors", {"w": torch.arange(4.0)}, {"key": "k", "commit": "def"})
    (copy / RUN / "scores/final/test.json").write_text('{"metrics": {"bleu": 20.0}, "inputs": {"c": "d"}}')
    assert differences(project, copy) == []


def test_a_recorded_project_is_compared_like_a_folder(project, copy, tmp_path, capsys):
    assert main(["record", str(project), str(tmp_path / "facts.json")]) == 0
    assert main(["compare", str(tmp_path / "facts.json"), str(copy)]) == 0
    (copy / RUN / "run.yaml").unlink()
    assert main(["compare", str(tmp_path / "facts.json"), str(copy)]) == 1
    assert "only before: settings" in capsys.readouterr().out
