"""Kill a whole Snakemake with everything that it started, and start it again."""

import hashlib
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

from pipeline.core.records.jobs import RunClaim, last_event
from qa.chaos.server import ROOT

sys.path.append(str(ROOT / "tests/helpers"))
from tests.workflow.test_two_drivers import PATIENCE_S, kill_all, start

KILLS = 2
LONGEST_S = 25.0


def end_of_killed_workflow(template: Path, folder: Path, weights: Path, rng: random.Random) -> tuple[str, str]:
    """Return the digest of the final weights, a path in the project, that a killed Snakemake makes; and its log."""
    run = weights.parent
    shutil.copytree(template, folder, symlinks=True)
    for _ in range(KILLS):
        workflow = start(folder, run)
        time.sleep(rng.uniform(0, LONGEST_S))
        if workflow.poll() is None:
            if last_event(RunClaim, folder / run):
                kill_all(workflow, folder, run)
            else:
                workflow.kill()
                workflow.wait()
            subprocess.run([sys.executable, "-m", "reprise", "unlock"], cwd=folder, check=False, capture_output=True)
    status = start(folder, run).wait(PATIENCE_S)
    said = (folder / "log").read_text(errors="replace")
    found = folder / weights
    digest = hashlib.sha256(found.read_bytes()).hexdigest() if status == 0 and found.exists() else "none"
    return digest, said
