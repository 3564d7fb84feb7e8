"""What a worker of pytest-xdist takes at a time."""

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


def pytest_xdist_make_scheduler(config, log):
    return OneSlurm(config, log)
