"""Properties of the Weighted Transformer that scales keep: compared sizes, and the learning rate of kappa and alpha."""

from pathlib import Path

import pytest
from real_project import real_project

from pipeline.core.artifacts import RunId
from pipeline.training.optimiser import Schedule

ROOT = Path(__file__).resolve().parents[2]
PAIRS = {"C": "C1", "N4": "C2", "A": "base", "B": "big"}  # the Transformer beside each in Table 2


def run(scale: str, paper: str, system: str):
    return real_project({"scale": scale}).run_spec(RunId(paper, system, "wmt14-en-de", 1))


@pytest.mark.parametrize("scale", ["demo", "small", "paper"])
@pytest.mark.parametrize(("system", "peak"), [("C", 3.13e-3), ("A", 5.41e-3), ("B", 3.83e-3)])
def test_kappa_and_alpha_have_the_printed_peak_rates(scale, system, peak):
    spec = run(scale, "weighted", system)
    schedule = Schedule(spec.model, spec.training)
    rates = [schedule.branch_weights(update) for update in range(1000)]
    assert max(rates) == pytest.approx(peak, rel=0.02)


@pytest.mark.parametrize("scale", ["demo", "small"])
@pytest.mark.parametrize(("weighted", "plain"), PAIRS.items())
def test_compared_models_have_the_same_size_and_dropout(scale, weighted, plain):
    ours, theirs = run(scale, "weighted", weighted).model, run(scale, "attention", plain).model
    for key in ("num_layers", "d_model", "d_ff", "dropout", "attention_dropout", "relu_dropout", "tie_embeddings"):
        assert getattr(ours, key) == getattr(theirs, key), key
