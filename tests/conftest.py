"""What a worker of pytest-xdist takes at a time."""

from pathlib import Path

from xdist.scheduler import LoadFileScheduling

HERE = Path(__file__).parent


class OneSlurm(LoadFileScheduling):
    """A file; and one worker all that need Slurm, of which there is one, so that the other never waits for it."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "slurm" if "pytest.mark.cluster" in (HERE.parent / file).read_text(encoding="utf-8") else file


def pytest_xdist_make_scheduler(config, log):
    return OneSlurm(config, log)
