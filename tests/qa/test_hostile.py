"""The first hostile cases of a seed; `python -m qa.chaos.hostile` does more."""

import os

import pytest

from qa.chaos.hostile.__main__ import CASES, impatient, made_model, run

SEED = int(os.environ.get("REPRISE_CHAOS_SEED", "1795341649"))
COUNTS = {"archives": 30, "servers": 15, "files": 30}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return made_model(tmp_path_factory.mktemp("packed") / "model")


@pytest.mark.qa
@pytest.mark.parametrize("kind", CASES)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_hostile_input_is_read_or_refused_within_seconds(kind, model):
    print(f"SEED={SEED}")
    with impatient():
        ends = list(run(kind, SEED, range(1, COUNTS[kind] + 1), model))
    assert len(ends) >= COUNTS[kind]
    assert not [(number, end) for number, end in ends if end not in ("read", "refused")]
