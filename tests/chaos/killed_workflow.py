"""The whole of Snakemake killed dead, with what it started, and started again."""

import hashlib
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.workflow.test_killed_workflow import PATIENCE_S, RUN, kill_all, start

KILLS = 2
LONGEST_S = 25.0
WEIGHTS = str(RUN / "model.safetensors")


def end_of_killed_workflow(template: Path, folder: Path, rng: random.Random, expected: str) -> tuple[bool, str]:
    """Whether Snakemake, killed now and then, makes weights of the digest `expected` of a project; and its log."""
    shutil.copytree(template, folder, symlinks=True)
    for _ in range(KILLS):
        workflow = start(folder)
        time.sleep(rng.uniform(0, LONGEST_S))
        if workflow.poll() is None:
            if (folder / RUN / "owner.json").exists():
                kill_all(workflow, folder / RUN)
            else:
                workflow.kill()
                workflow.wait()
            subprocess.run([sys.executable, "-m", "pipeline", "unlock"], cwd=folder, check=False, capture_output=True)
    status = start(folder).wait(PATIENCE_S)
    said = (folder / "log").read_text(errors="replace")
    found = folder / WEIGHTS
    same = status == 0 and found.exists() and hashlib.sha256(found.read_bytes()).hexdigest() == expected
    return same, said
