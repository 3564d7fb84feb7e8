"""Settings files of every kind with something wrong: each loads, or is refused with one line a fault, at once.

`REPRISE_FUZZ=1000 python -m pytest tests/papers/test_fuzz.py` tries as many new ones;
REPRISE_FUZZ_SEED repeats those of a printed seed.
"""

import os
import random
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, note, seed, settings
from mutations import mutations

from pipeline.core.digests import ROOT
from pipeline.core.errors import UserError
from pipeline.papers.project import load_project
from pipeline.planning.devices import load_devices

EXAMPLES = int(os.environ.get("REPRISE_FUZZ", "100"))
FRESH = "REPRISE_FUZZ" in os.environ
SEED = int(os.environ.get("REPRISE_FUZZ_SEED", random.SystemRandom().randrange(1 << 32)))
LONGEST_S = 5
"""Longest time of one load, which takes a quarter of a second."""


def load(root: Path, name: str) -> None:
    """All that reads settings, at the scale whose file is changed."""
    path = Path(name)
    project = load_project(root, {"scale": path.stem} if path.parent.name == "scales" else {})
    for fault in project.dataset_records.faults.values():
        raise fault
    load_devices(root / "workflow/devices.yaml")


@pytest.mark.slow
def test_mutated_file_is_refused_in_one_line(copied_project):
    root, counts = copied_project.root, {"loaded": 0, "refused": 0}

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=not FRESH,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(mutations(ROOT))
    def check(mutation):
        note(f"{mutation.path}: {mutation.what}")
        file = root / mutation.path
        before, started = file.read_bytes(), time.process_time()
        file.write_bytes(mutation.content)
        try:
            load(root, mutation.path)
        except UserError as error:
            counts["refused"] += 1
            for line in str(error).split("\n"):
                assert line.isprintable() and ": " in line and len(line) < 3000, line
        else:
            counts["loaded"] += 1
            assert not mutation.must_fail, "a misspelling was accepted"
        finally:
            file.write_bytes(before)
        assert time.process_time() - started < LONGEST_S

    if FRESH:
        print(f"REPRISE_FUZZ_SEED={SEED}")  # pytest shows it with a failure
        check = seed(SEED)(check)
    check()
    assert counts["refused"] > counts["loaded"] > 0
