"""Claims about the times of layers: made-up ones bring out every verdict of every kind."""

import itertools

import pytest
from fabricated import folder_of
from made_claims import CONTRADICTED, NOT_RUN, UPHELD, claims_of, row_of, runs
from made_records import layer_costs

from pipeline.probes.layer_cost import KERNEL, WINDOW


def layer_times_of(project):
    return folder_of(project, runs(project, "C")[0]).parents[4] / "layer_times.json"


def put_layer_times(project, attention, recurrent):
    """Times of the form c n^p d^q, by layer, with noise by which the exponents of repeats differ."""
    sizes = itertools.product((64, 128, 256, 512), repeat=2)
    noises = [[1e-4 * (i * step % 5 - 2) for i in range(5)] for step in range(3)]
    times = [
        {"layer": name, "n": n, "d": d, "seconds": [c * (1 + noise * n) * n**p * d**q for noise in noises[step]]}
        for n, d in sizes
        for step, name, (c, p, q) in ((1, "self-attention", attention), (2, "recurrent", recurrent))
    ]
    layer_costs(times, kernel=KERNEL, window=WINDOW).write(layer_times_of(project))


@pytest.mark.parametrize(("power", "expected"), [(2.0, UPHELD), (1.0, CONTRADICTED), (3.0, CONTRADICTED)])
def test_exponents_are_judged_by_their_range(project_with, power, expected):
    claim = claims_of(kind="exponent", layer="self-attention", variable="n", at_least=1.6, at_most=2.4)
    project = project_with(claim)
    assert row_of(project)["verdict"] == NOT_RUN
    put_layer_times(project, (1e-9, power, 1), (1e-9, 1, 2))
    row = row_of(project)
    assert row["verdict"] == expected
    assert row["ours"] == f"n^{power:.2f}"


@pytest.mark.parametrize(("constant", "expected"), [(1e-9, UPHELD), (1e-7, CONTRADICTED)])
def test_a_layer_is_cheaper_only_if_it_is_so_at_every_size(project_with, constant, expected):
    project = project_with(claims_of(kind="cheaper_below_width", layer="self-attention", than="recurrent"))
    put_layer_times(project, (constant, 2, 1), (1e-9, 1, 2))
    assert row_of(project)["verdict"] == expected


@pytest.mark.parametrize(("constant", "expected", "ours"), [(1.3e-9, UPHELD, "1.30"), (1.7e-9, CONTRADICTED, "1.70")])
def test_a_layer_takes_at_most_so_many_times_as_long(project_with, constant, expected, ours):
    claim = claims_of(kind="time_ratio", layer="self-attention", than="recurrent", at_most=1.5)
    project = project_with(claim)
    put_layer_times(project, (constant, 1, 2), (1e-9, 1, 2))
    row = row_of(project)
    assert (row["verdict"], row["ours"]) == (expected, f"{ours} times as long")


def test_a_ratio_leaves_out_sizes_that_one_layer_lacks(project_with):
    """Times that differ by size: the ratio is 4 at n = 512, which the other layer lacks, and 2 elsewhere."""
    seconds = {n: [1e-6 * n * factor for factor in (1.0, 1.01, 0.99)] for n in (64, 128, 256, 512)}
    times = [{"layer": "recurrent", "n": n, "d": 64, "seconds": seconds[n]} for n in (64, 128, 256)]
    times += [
        {
            "layer": "self-attention",
            "n": n,
            "d": 64,
            "seconds": [(4 if n == 512 else 2) * value for value in seconds[n][::-1]],
        }
        for n in seconds
    ]
    claim = claims_of(kind="time_ratio", layer="self-attention", than="recurrent", at_most=3)
    project = project_with(claim)
    layer_costs(times, kernel=KERNEL, window=WINDOW).write(layer_times_of(project))
    assert row_of(project)["ours"] == "2.00 times as long"


def test_a_layer_that_was_not_timed_makes_no_verdict(project_with):
    project = project_with(claims_of(kind="time_ratio", layer="self-attention", than="additive attention", at_most=1))
    put_layer_times(project, (1e-9, 2, 1), (1e-9, 1, 2))
    row = row_of(project)
    assert row["verdict"] == NOT_RUN
    assert "no times of additive attention" in row["evidence"]
