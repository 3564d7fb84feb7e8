"""Order and number of tests that a worker of pytest-xdist takes; tests see no Slurm but their own."""

import gc
import logging
import os
import shutil
from collections import Counter
from functools import cache
from pathlib import Path

import psutil
import pytest
from xdist.scheduler import LoadFileScheduling

HERE = Path(__file__).parent
LONGEST = (
    "use/test_documented_commands.py",
    "qa/test_chaos.py",
    "workflow/test_verify.py",
    "gpu/test_budgets.py",
    "use/test_own_text.py",
    "workflow/test_last_words.py",
    "workflow/test_failing_system.py",
    "workflow/test_documents.py",
    "training/test_distributed.py",
    "analysis/claims/test_false_decisions.py",
    "site/test_browser.py",
    "site/test_pages.py",
    "workflow/test_how_to.py",
    "workflow/test_two_drivers.py",
    "workflow/test_dry_runs.py",
    "use/test_speech.py",
    "cluster/test_launch_local.py",
    "workflow/test_missing_data.py",
)
"""Files by the time that they were measured to take, longest first."""
MEMORY = Path("/dev/shm")
MEMORY_NEEDED = 2 << 30
"""Bytes, many times what a run of all tests has in use."""

# before a conftest.py of a folder imports torch: several threads, in commands as well, spin while they wait for another
os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # else those of a test that asks for two do
if not shutil.which("nvidia-smi"):  # before any test imports Triton with torch, which reads it once
    os.environ.setdefault("TRITON_INTERPRET", "1")


class OneSlurm(LoadFileScheduling):
    """A file; and one worker all that need Slurm, of which there is one, so that the other never waits for it."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "slurm" if needs_slurm(HERE.parent / file) else file


@pytest.fixture(autouse=True)
def logs_of_every_level():
    """Log every level again after `reprise results` ran in this process, which silences the stages."""
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="session", autouse=True)
def parsed_once():
    """Parse each text of YAML once."""
    from parsed_once import parse_once

    from pipeline.core import yaml_file

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_file, "parse_yaml", parse_once(yaml_file.parse_yaml))
        yield


@pytest.fixture
def loaded_once(monkeypatch):
    """Let commands share the checked project of this repository instead of loading it each time."""
    from real_project import ROOT, real_project

    from pipeline.papers import project

    load = project.load_project

    def shared(root, overrides=None):
        return real_project(overrides) if Path(root).resolve() == ROOT else load(root, overrides)

    monkeypatch.setattr(project, "load_project", shared)


@cache  # asked by each of thousands of tests
def needs_slurm(file: Path) -> bool:
    return "pytest.mark.cluster" in file.read_text(encoding="utf-8")


def pytest_configure(config):
    """Hide Slurm, for which Snakemake's plugin waits two seconds if it is not up, and shift seeds if asked to.

    Folders of tests lie in memory if it is large: most of a test's files wait for the disk, one after another.
    """
    os.environ["SLURM_CONF"] = os.devnull
    if not hasattr(config, "workerinput"):
        remove_folders_of_killed_runs(MEMORY)
    if holds_test_folders(MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    if shift := int(os.environ.get("REPRISE_TEST_SEED", "0")):
        from shifted_seeds import shift_seeds

        shift_seeds(shift)


def holds_test_folders(folder: Path) -> bool:
    """Return whether a folder in memory exists, is large enough and may hold programs."""
    if not folder.is_dir():
        return False
    found = os.statvfs(folder)
    free = min(found.f_bavail * found.f_frsize, psutil.virtual_memory().available)
    most, used = (Path("/sys/fs/cgroup") / name for name in ("memory.max", "memory.current"))
    if most.exists() and (limit := most.read_text().strip()) != "max":  # of a container
        free = min(free, int(limit) - int(used.read_text()))
    return free >= MEMORY_NEEDED and not found.f_flag & os.ST_NOEXEC


def remove_folders_of_killed_runs(folder: Path) -> None:
    """Free the memory of test runs that ended without removing their folders, which pytest keeps for three days."""
    for lock in folder.glob("pytest-of-*/pytest-*/.lock"):
        if lock.stat().st_uid == os.getuid() and not psutil.pid_exists(int(lock.read_text() or 0)):
            shutil.rmtree(lock.parent, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect no garbage while tests are found, and skip modules and tests later: they live as long as the process."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(100_000)  # else it takes a fifteenth of all processor time
        gc.enable()


@pytest.hookimpl(optionalhook=True)  # `make mutants` runs without xdist
def pytest_xdist_make_scheduler(config, log):
    return OneSlurm(config, log)


def pytest_collection_modifyitems(config, items):
    """Start with Slurm's tests, then the longest files, then those with the most slow tests.

    So no worker is left alone at the end with a file that takes minutes.
    """
    if hasattr(config, "workerinput"):
        slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
        longest = {HERE / name: place for place, name in enumerate(LONGEST)}
        items.sort(
            key=lambda item: (not needs_slurm(item.path), longest.get(item.path, len(longest)), -slow[item.path])
        )
