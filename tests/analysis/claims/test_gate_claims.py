"""Claims about gate values and about layers."""

import itertools
from typing import get_args

import numpy as np
import pytest
from fabricated import AT_PLATEAU, folder_of, write_training
from made_claims import CONTRADICTED, NOT_RUN, UPHELD, claim_rows, claims_of, row_of, runs
from made_records import layer_costs
from real_project import real_project

from pipeline.analysis.claims.inside_models import WordKind
from pipeline.core.artifacts import Gates
from pipeline.core.json_csv import write_json
from pipeline.metrics import write_statistics
from pipeline.papers.reports import claim_artifacts
from pipeline.probes.layer_cost import KERNEL, WINDOW


def put_gates(project, claim, means: dict[str, float], words: int = 2) -> None:
    """`words` of each kind in every one of 200 sentences, their gates spread around the mean of their kind."""
    rng = np.random.default_rng(3)

    def rows(mean: float) -> np.ndarray:
        noise = rng.normal(0, 0.02, 200)
        return np.stack((words * (mean + noise - noise.mean()), np.full(200, words)), axis=1)

    named = {f"{claim.channel}.{kind}": rows(means.get(kind, 0.5)) for kind in get_args(WordKind)}
    for run in project.runs_of("multichannel", claim.system, claim.dataset):
        write_statistics(folder_of(project, run) / "gates.npz", named)
        write_json(folder_of(project, run) / "gates.json", {"statistics": "gates.npz"})
        write_training(project, run, AT_PLATEAU, AT_PLATEAU)


@pytest.fixture
def project(tmp_path):
    return real_project({"work": str(tmp_path), "scale": "demo"})


def judge(project, name) -> dict[str, str]:
    return next(row for row in claim_rows(project, "multichannel") if row["claim"] == name)


@pytest.mark.parametrize(
    ("name", "first", "second", "expected"),
    [
        ("gate-idioms-full", 0.4, 0.5, "upheld"),
        ("gate-idioms-full", 0.5, 0.5, "not distinguishable"),
        ("gate-idioms-full", 0.5, 0.4, "contradicted"),
        ("gate-names-states", 0.4, 0.5, "upheld"),
        ("gate-names-states", 0.5, 0.4, "upheld"),
        ("gate-names-states", 0.5, 0.51, "not distinguishable"),
        ("gate-names-states", 0.5, 0.5, "contradicted"),
    ],
)
def test_every_verdict_follows_from_the_gates(project, name, first, second, expected):
    claim = project.claims["multichannel"].claims[name]
    put_gates(project, claim, dict(zip(claim.words, (first, second), strict=True)))
    found = judge(project, name)
    assert found["verdict"].removeprefix("provisional ") == expected
    assert found["ours"] == f"mean z: {claim.words[0]} {first:.3f}, {claim.words[1]} {second:.3f}"
    assert found["test"] == "paired bootstrap over sentences; run-to-run variance unknown and not counted"


def test_too_few_words_say_nothing_and_no_run_is_no_verdict(project):
    claim = project.claims["multichannel"].claims["gate-idioms-full"]
    assert judge(project, "gate-idioms-full")["verdict"] == "not run"
    put_gates(project, claim, {"names": 0.4, "idioms": 0.5}, words=0)
    found = judge(project, "gate-idioms-full")
    assert found["verdict"] == "not distinguishable" and found["ours"] == "fewer than 20 words of names"


def test_a_claim_about_gates_asks_for_those_of_its_system(project):
    gates = (artifact for artifact in claim_artifacts(project, "multichannel") if isinstance(artifact, Gates))
    assert {artifact.run.system for artifact in gates} == {"RNN-EMB", "NTM-RNN-EMB"}


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


PAIR = {"layer": "self-attention", "than": "recurrent"}
EXPONENT = {"kind": "exponent", "layer": "self-attention", "variable": "n", "at_least": 1.6, "at_most": 2.4}
CHEAPER, RATIO = {"kind": "cheaper_below_width", **PAIR}, {"kind": "time_ratio", **PAIR, "at_most": 1.5}


@pytest.mark.parametrize(
    ("claim", "constant", "power", "width_power", "expected", "ours"),
    [
        *((EXPONENT, 1e-9, 2, 1, UPHELD, "n^2.00"), (EXPONENT, 1e-9, 1, 1, CONTRADICTED, "n^1.00")),
        (EXPONENT, 1e-9, 3, 1, CONTRADICTED, "n^3.00"),
        *((CHEAPER, 1e-9, 2, 1, UPHELD, None), (CHEAPER, 1e-7, 2, 1, CONTRADICTED, None)),
        (RATIO, 1.3e-9, 1, 2, UPHELD, "1.30 times as long"),
        (RATIO, 1.7e-9, 1, 2, CONTRADICTED, "1.70 times as long"),
    ],
)
def test_times_of_layers_bring_out_each_verdict(project_with, claim, constant, power, width_power, expected, ours):
    """A layer is cheaper only if it is so at every size."""
    project = project_with(claims_of(**claim))
    assert row_of(project)["verdict"] == NOT_RUN
    put_layer_times(project, (constant, power, width_power), (1e-9, 1, 2))
    row = row_of(project)
    assert (row["verdict"], row["ours"]) == (expected, ours or row["ours"])


def test_a_ratio_leaves_out_sizes_that_one_layer_lacks(project_with):
    """Times that differ by size: the ratio is 4 at n = 512, which the other layer lacks, and 2 elsewhere."""
    seconds = {n: 1e-6 * n * np.array([1.0, 1.01, 0.99]) for n in (64, 128, 256, 512)}
    rows = [("recurrent", n, seconds[n]) for n in (64, 128, 256)]
    rows += [("self-attention", n, (4 if n == 512 else 2) * seconds[n][::-1]) for n in seconds]
    times = [{"layer": layer, "n": n, "d": 64, "seconds": values.tolist()} for layer, n, values in rows]
    project = project_with(claims_of(kind="time_ratio", **PAIR, at_most=3))
    layer_costs(times, kernel=KERNEL, window=WINDOW).write(layer_times_of(project))
    assert row_of(project)["ours"] == "2.00 times as long"


def test_a_layer_that_was_not_timed_makes_no_verdict(project_with):
    project = project_with(claims_of(kind="time_ratio", layer="self-attention", than="additive attention", at_most=1))
    put_layer_times(project, (1e-9, 2, 1), (1e-9, 1, 2))
    row = row_of(project)
    assert (row["verdict"], "no times of additive attention" in row["evidence"]) == (NOT_RUN, True)
