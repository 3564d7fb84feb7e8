"""Recordings are split by speaker as near to the shares as possible, with a warning if they differ."""

import random

import pytest

from reprise.new_data import SPLITS, by_weight
from reprise.new_data.recordings import warn_of_shares

SHARES = (0.8, 0.1, 0.1)


def found_shares(weights: dict[str, float]) -> list[float]:
    chosen = by_weight(weights, SHARES, "speakers")
    assert sorted(key for keys in chosen.values() for key in keys) == sorted(weights) and all(chosen.values())
    return [sum(weights[key] for key in chosen[split]) / sum(weights.values()) for split in SPLITS]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("speakers", [12, 40, 300])
def test_speakers_of_uneven_length_come_near_the_shares(speakers, seed):
    draw = random.Random(seed)
    weights = {f"s{number}": draw.paretovariate(1.5) for number in range(speakers)}
    largest = max(weights.values()) / sum(weights.values())
    if largest < 0.7:
        assert found_shares(weights) == pytest.approx(SHARES, abs=0.06)


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_speakers_does_not_matter(seed):
    draw = random.Random(seed)
    weights = {f"s{number}": float(draw.randint(1, 4)) for number in range(20)}
    shuffled = dict(draw.sample([*weights.items()], 20))
    assert by_weight(weights, SHARES, "speakers") == by_weight(shuffled, SHARES, "speakers")


def test_few_speakers_have_one_split_each_with_a_warning(caplog):
    weights = {"a": 38.0, "b": 22.0, "c": 40.0}
    assert found_shares(weights) == [0.4, 0.38, 0.22]
    warn_of_shares(by_weight(weights, SHARES, "speakers"), weights, SHARES)
    assert "train, dev and test have 40/38/22 % of the audio" in caplog.text
