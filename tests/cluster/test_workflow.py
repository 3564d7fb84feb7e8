"""The same workflow, through `--profile slurm` and on this machine alone, ends in the same tables."""

import csv
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from launching import PROJECT, until
from tracing import outcomes, starts

from pipeline.files import read_json

pytestmark = pytest.mark.cluster

TABLE = Path("results/smoke/weighted/table2.csv")
COST = {"device_hours", "hardware", "commit"}  # what may differ with where and how fast it ran
QUICK = ("--slurm-init-seconds-before-status-checks", "2")


def checkout(folder: Path) -> Path:
    """A copy of what the workflow needs."""
    folder.mkdir()
    for name in ("Snakefile", "config.yaml"):
        shutil.copy(PROJECT / name, folder)
    for name in ("pipeline", "profiles", "slurm", "workflow"):
        shutil.copytree(PROJECT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


class Workflow:
    """A `snakemake` in a checkout of its own."""

    def __init__(self, folder: Path):
        self.folder = folder

    def start(self, *options: str) -> subprocess.Popen:
        environment = os.environ | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.folder),
            "REPRISE_QUEUE_INTERVAL": "1",
            "XDG_CACHE_HOME": str(self.folder / "cache"),
        }
        with open(self.folder / "snakemake.log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "snakemake", *options],
                **{"cwd": self.folder, "env": environment, "stdout": log, "stderr": log, "start_new_session": True},
            )

    def finish(self, *options: str) -> None:
        code = self.start(*options, "--config", "scale=smoke", "--", str(TABLE)).wait(400)
        assert code == 0, (self.folder / "snakemake.log").read_text()[-5000:]

    @property
    def runs(self) -> list[Path]:
        return sorted((self.folder / "work" / "smoke" / "runs").glob("*/*/*/seed*"))

    @property
    def weights(self) -> dict[str, str]:
        return {
            str(run.relative_to(self.folder)): read_json(run / "trained.json")["weights_digest"] for run in self.runs
        }

    @property
    def table(self) -> list[dict[str, str]]:
        with open(self.folder / TABLE, newline="", encoding="utf-8") as handle:
            return [{name: cell for name, cell in row.items() if name not in COST} for row in csv.DictReader(handle)]


def test_slurm_and_local_runs_agree_though_snakemake_is_killed(slurm, tmp_path):
    here, there = Workflow(checkout(tmp_path / "here")), Workflow(checkout(tmp_path / "there"))
    local = here.start("--config", "scale=smoke", "--cores", "1", "--", str(TABLE))
    killed = there.start("--profile", "slurm", *QUICK, "--config", "scale=smoke", "--", str(TABLE))
    until(lambda: any(starts(run) for run in there.runs), 200, "a training on Slurm")
    os.killpg(killed.pid, signal.SIGKILL)  # snakemake and its launchers, but not the jobs
    killed.wait()
    assert there.start("--unlock").wait(60) == 0
    there.finish("--profile", "slurm", *QUICK)
    assert local.wait(400) == 0, (here.folder / "snakemake.log").read_text()[-5000:]

    assert all(outcomes(run) == ["done"] for run in there.runs)
    assert there.weights == here.weights
    assert there.table == here.table
    assert len(there.table) > 1


@pytest.mark.parametrize("options", [(), ("--config", "scale=demo")])
def test_profile_selects_paper_scale_unless_told_otherwise(tmp_path, options):
    workflow = Workflow(checkout(tmp_path / "checkout"))
    assert workflow.start("--profile", "slurm", "-n", "results/table2.csv", *options).wait(60) == 0
    planned = (workflow.folder / "snakemake.log").read_text()
    assert ("results/demo/" if options else "results/paper/") in planned
    assert ("results/paper/" if options else "results/demo/") not in planned
