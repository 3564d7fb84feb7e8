"""The Slurm of the tests: the script that starts and stops it, its state, and the lock of its user."""

import os
import tempfile
from pathlib import Path

SCRIPT = Path(__file__).resolve().with_name("slurm.sh")
STATE = Path(os.environ.get("REPRISE_SLURM_DIR", "/var/tmp/reprise-slurm"))
LOCK = Path(tempfile.gettempdir()) / "reprise-slurm-tests.lock"
