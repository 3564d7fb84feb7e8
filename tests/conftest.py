"""What a worker of pytest-xdist takes at a time, and in which order; no Slurm but that of the tests of it."""

import os
from collections import Counter
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

HERE = Path(__file__).parent


class OneSlurm(LoadFileScheduling):
    """A file; and one worker all that need Slurm, of which there is one, so that the other never waits for it."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "slurm" if needs_slurm(HERE.parent / file) else file


@cache  # asked anew for each of thousands of tests
def needs_slurm(file: Path) -> bool:
    return "pytest.mark.cluster" in file.read_text(encoding="utf-8")


def pytest_configure():
    """Snakemake's plugin asks Slurm as it is loaded, and waits two seconds where one is installed and not up."""
    os.environ["SLURM_CONF"] = os.devnull


def pytest_xdist_make_scheduler(config, log):
    return OneSlurm(config, log)


def pytest_collection_modifyitems(config, items):
    """No worker is left alone with what takes long: Slurm's tests come first, then files with the most slow ones."""
    if hasattr(config, "workerinput"):
        slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
        items.sort(key=lambda item: (not needs_slurm(item.path), -slow[item.path]))
