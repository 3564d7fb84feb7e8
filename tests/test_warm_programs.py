"""Commands that the warm server forks behave as new processes do."""

import os
import subprocess

import pytest
from copied_project import ROOT, call

pytestmark = pytest.mark.slow


def test_status_output_and_errors_are_those_of_a_new_process(tmp_path):
    words = ("-m", "pipeline", "schemas", "--out", "/proc/none")
    variables = {"PATH": f"{os.path.dirname(os.sys.executable)}{os.pathsep}{os.environ['PATH']}"}
    fresh = subprocess.run(
        ["env", f"PYTHONPATH={ROOT}", "python", *words],
        **{"cwd": ROOT, "capture_output": True, "text": True, "env": os.environ | variables},
    )
    warm = call(ROOT, "python", *words)
    assert fresh.returncode == 1 and fresh.stderr.startswith("error: ")
    assert (warm.returncode, warm.stdout, warm.stderr) == (fresh.returncode, fresh.stdout, fresh.stderr)
