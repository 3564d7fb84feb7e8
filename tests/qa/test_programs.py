"""The programs of qa/ start outside of pytest, which has more folders on its path."""

import os
import subprocess
import sys

import pytest

from pipeline.core.digests import ROOT


@pytest.mark.parametrize("program", ["qa.campaign", "qa.chaos", "qa.chaos.hostile"])
def test_program_of_qa_starts_by_itself(program):
    environment = os.environ | {"PYTHONPATH": ""}
    done = subprocess.run(
        [sys.executable, "-m", program, "--help"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and done.stdout.startswith("usage:"), done.stderr
