"""The programs of qa/ start outside of pytest, and a campaign has the artifacts of the paper scale."""

import os
import re
import subprocess
import sys
from collections import Counter

import pytest

from pipeline.core.provenance import ROOT
from pipeline.papers.project import load_project
from pipeline.workflow.graph import Graph
from qa.campaign.project import SETTINGS, forecast, make_project
from qa.mutants.equivalent import equivalents, outdated


@pytest.mark.parametrize("program", ["qa.campaign", "qa.chaos", "qa.chaos.hostile"])
def test_program_of_qa_starts_by_itself(program):
    place = {"cwd": ROOT, "env": os.environ | {"PYTHONPATH": ""}}
    done = subprocess.run([sys.executable, "-m", program, "--help"], **place, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("usage:"), done.stderr


def test_equivalent_mutants_are_of_lines_that_exist():
    assert outdated(ROOT, equivalents(ROOT / "qa/mutants/equivalent.yaml")) == []


@pytest.mark.slow
@pytest.mark.qa
def test_small_project_has_paper_scale_artifacts_for_one_seed(tmp_path):
    """Made from small archives of the same names."""
    small = make_project(tmp_path / "small", tmp_path / "archives", "http://127.0.0.1")

    def artifacts(root):
        graph = Graph(load_project(root, SETTINGS))
        return Counter(map(repr, graph.closure(graph.reports(graph.project.reproduced))))

    wanted = {
        artifact: count for artifact, count in artifacts(ROOT).items() if not re.search(r"seed=(?!1\))", artifact)
    }
    assert artifacts(small) == wanted
    trainings = [artifact for artifact in wanted if artifact.startswith("Trained(")]
    assert len(forecast(tmp_path)) == len(trainings) > 100
    assert sum(path.stat().st_size for path in (tmp_path / "archives").rglob("*") if path.is_file()) < 10e6
