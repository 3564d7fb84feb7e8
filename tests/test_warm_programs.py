"""Commands that the warm server forks behave as new processes do."""

import os
import signal
import subprocess
import time

import pytest
from copied_project import ROOT, call
from warm import warm_programs

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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_signal_to_the_client_ends_the_command(number, tmp_path):
    folder = warm_programs()
    noted = tmp_path / "pid"
    rule = f"rule one:\n    shell: 'echo $PPID >{noted}; sleep 5'\n"
    (tmp_path / "Snakefile").write_text(rule)
    process = subprocess.Popen(
        [folder / "snakemake", "--cores", "1", "--quiet", "all"],
        **{"cwd": tmp_path, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True},
    )
    while not (noted.exists() and noted.read_text().strip()):
        assert process.poll() is None
        time.sleep(0.05)
    command = int(noted.read_text())
    process.send_signal(number)
    assert process.wait(60) in (-number, 1)  # Snakemake lets its job finish, and fails
    while os.path.exists(f"/proc/{command}"):
        time.sleep(0.05)


def test_other_programs_run_in_new_interpreters():
    folder = warm_programs()
    found = subprocess.run(
        [folder / "python", "-c", "import os, sys; print(os.getppid(), 'torch' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert found == f"{os.getpid()} False\n"
