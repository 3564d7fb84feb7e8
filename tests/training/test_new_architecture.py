"""A folder dropped into pipeline/models is an architecture: trained, decoded, measured, forecast, timed, in schemas."""

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ROOT / "tests/helpers/architectures"
DRIVER = """
import sys
import pipeline.models
pipeline.models.__path__.append(sys.argv[1])
from pipeline.__main__ import main
sys.exit(main(sys.argv[2:]))
"""
PAPER = """
title: A toy
authors: nobody
year: 2000
arxiv: "0000.00000"
systems:
  toy:
    description: a toy
    model: {architecture: bag_of_words, width: 8}
    training: {max_steps: 4000, warmup_steps: 4000, tokens_per_update: 512, validate_every: 20, checkpoint_every: 10}
decodings: {final: {beam_size: 4}}
tables:
  table1:
    caption: One row.
    printed: table1.csv
    label: [model]
    cells: {bleu: {metric: sacrebleu, dataset: wmt14-en-de, split: test, decoding: final, printed: bleu}}
"""
TABLE = "model,bleu,source,system\ntoy,,ours-to-run,toy\n"
RESOURCES = yaml.safe_load((ROOT / "workflow/scales/smoke.yaml").read_text())["resources"]
SCALE = f"""
description: small
datasets: {{wmt14-en-de: grammar-smoke-en-de}}
training: {{max_steps: {{divide: 2000}}}}
resources: {RESOURCES}
"""


@pytest.fixture
def stage(tmp_path):
    """Runs a stage with the toy's folder beside those of pipeline/models."""
    folders = shutil.copytree(FOLDERS, tmp_path / "architectures")

    def run(*arguments) -> None:
        command = [sys.executable, "-c", DRIVER, folders, *arguments]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == 0, done.stderr

    return run


def test_new_architecture_is_trained_and_decoded(stage, new_run):
    run = new_run(architecture="bag_of_words", model={"width": 8}, max_steps=40)
    stage("train", "--run", run, "--threads", 1)
    assert json.loads((run / "done.json").read_text())["steps"] == 40
    options = "--weights", run / "model.safetensors", "--split", "dev", "--out", run / "dev.tok", "--threads", 1
    stage("translate", *options)
    assert len((run / "dev.tok").read_text().splitlines()) == 40


def project_of_one_paper(root: Path) -> Path:
    shutil.copytree(ROOT / "workflow", root / "workflow", ignore=shutil.ignore_patterns("papers", "scales"))
    shutil.copy(ROOT / "config.yaml", root)
    files = {"papers/toys/paper.yaml": PAPER, "papers/toys/table1.csv": TABLE, "scales/smoke.yaml": SCALE}
    for name, text in files.items():
        path = root / "workflow" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_new_architecture_is_forecast_and_timed(stage, tmp_path):
    root = project_of_one_paper(tmp_path / "project")
    settings = ["--root", root, "--set", "scale=smoke", "--set", "paper=toys", "--set", f"work={tmp_path / 'work'}"]
    calibration, plan = tmp_path / "calibration.json", tmp_path / "plan.csv"
    stage("calibrate", *settings, "--seconds", 1, "--threads", 1, "--out", calibration)
    assert [point["family"] for point in json.loads(calibration.read_text())["points"]] == ["bag_of_words"]
    stage("plan", *settings, "--calibration", calibration, "--out", plan)
    with plan.open() as handle:
        jobs = {row["job"]: row for row in csv.DictReader(handle)}
    assert all(float(jobs[job][column]) > 0 for job in ("train", "translate") for column in ("flops", "hours_here"))
    stage("schemas", "--out", tmp_path / "schemas")
    schema = json.loads((tmp_path / "schemas/run.json").read_text())
    assert "width" in schema["$defs"]["BagOfWordsConfig"]["properties"]
