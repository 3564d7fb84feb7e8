"""Planned designs of experiments, and FLOPs of a step."""

import numpy as np
import pytest
from made_records import measured_noise
from real_project import real_project
from scipy import stats

from pipeline.core.provenance import ROOT
from pipeline.papers.project import Project
from pipeline.planning.designs import designs, smallest_effect
from pipeline.planning.plan import shown_designs
from pipeline.workflow.rules import training_flops
from reprise.cli.record import RunRecord

NOISE = measured_noise(
    "grammar-en-de",
    bleu_paper=np.random.default_rng(0).normal(25, 1, 20).tolist(),
    perplexity=np.exp(np.random.default_rng(1).normal(1.5, 0.02, 20)).tolist(),
    training_loss=np.random.default_rng(3).normal(0.1, 0.01, 20).tolist(),
)
RATES = measured_noise("grammar-speech-source", wer=np.exp(np.random.default_rng(2).normal(3, 0.1, 20)).tolist())


@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
def test_the_smallest_effect_is_seen_four_times_in_five(seeds):
    """The power of Student's test, from the noncentral t, whose centre the sum of two quantiles approximates."""
    freedom = 6 * (seeds - 1)
    effect = smallest_effect(np.array(NOISE.values["bleu_paper"]), [seeds, seeds], freedom)
    centre = effect / (np.std(NOISE.values["bleu_paper"], ddof=1) * (2 / seeds) ** 0.5)
    power = stats.nct.sf(stats.t.ppf(0.975, freedom), freedom, centre)
    assert power == pytest.approx(0.8, abs=0.02)


def test_single_seed_effect_uses_degrees_of_freedom_of_the_noise():
    values = np.array(NOISE.values["bleu_paper"])
    effect, sd = smallest_effect(values, [1, 1], 0), np.std(values, ddof=1)
    assert effect == pytest.approx(sd * 2**0.5 * (stats.t.ppf(0.975, 19) + stats.t.ppf(0.8, 19)))


@pytest.fixture
def found(monkeypatch, tmp_path):
    """Designs of a paper by the name of their claim."""
    measured = {"transformer": NOISE, "recogniser": RATES}
    monkeypatch.setattr(Project, "noise_of", lambda project, family: measured.get(family))
    project = real_project({"scale": "demo", "seeds": 3, "work": str(tmp_path)})
    return lambda paper: {design.name: design for design in designs(project, paper)}


PRINTED = {
    ("attention", "one-head"): np.log(5.29 / 4.92),
    ("attention", "depth-2"): np.log(6.11 / 5.19),
    ("weighted", "better-two-layers"): 24.8 - 23.7,
    ("weighted", "projection-over-softmax"): None,
    # Table 3 of Cold Fusion prints two domains; shallow fusion of the attention model is printed nowhere
    ("coldfusion", "target-order-1"): 37.45 - 27.50,
    ("coldfusion", "source-order-1"): 13.54 - 11.52,
    ("coldfusion", "domain-gap"): 43.52 - 17.61,
    ("coldfusion", "ctc-target"): 47.46 - 43.52,
    ("coldfusion", "shallow-fusion"): None,
}


def test_printed_effects_are_those_of_the_printed_tables(found):
    effects = {paper: found(paper) for paper in ("attention", "weighted", "coldfusion")}
    for (paper, claim), printed in PRINTED.items():
        assert effects[paper][claim].printed == (printed and pytest.approx(printed)), claim


def test_factor_claim_has_the_log_noise_of_four_trainings(found):
    decoder = found("coldfusion")["decoder-size"]
    assert decoder.quantity == "log wer" and decoder.seeds == [3, 3, 3, 3]
    assert decoder.printed == pytest.approx(np.log((33.98 / 14.68) / (17.42 / 11.52)))
    deviation = np.std(np.log(RATES.values["wer"]), ddof=1)
    two = deviation * (2 / 3) ** 0.5 * (stats.t.ppf(0.975, 10) + stats.t.ppf(0.8, 10))
    found = [smallest_effect(np.log(RATES.values["wer"]), seeds, 10) for seeds in ([3, 3], decoder.seeds)]
    assert found == pytest.approx([two, two * 2**0.5])


def test_claim_about_training_losses_has_their_noise(found):
    """Many degrees of freedom, so that both quantiles are near those of a normal distribution."""
    design = found("attention")["dropout-training-loss"]
    normal = np.std(NOISE.values["training_loss"], ddof=1) * (2 / 3) ** 0.5 * (1.96 + 0.84)
    assert (design.quantity, design.seeds, design.printed) == ("training_loss", [3, 3], None)
    assert design.smallest == pytest.approx(normal, rel=0.06)


def test_a_claim_about_one_training_has_no_design(found):
    assert "averaging" not in found("attention") and shown_designs("multichannel", []) == ""


@pytest.mark.parametrize("scale", ["demo", "paper"])
def test_effect_is_unknown_if_noise_is_of_other_scale_or_data(monkeypatch, tmp_path, scale):
    monkeypatch.setattr(Project, "noise_of", lambda project, family: NOISE)
    project = real_project({"scale": scale, "seeds": 3, "work": str(tmp_path)})
    found = {design.name: design for paper in ("attention", "multichannel") for design in designs(project, paper)}
    on_these_data = {name for name, design in found.items() if design.smallest is not None}
    assert "one-head" in found and ("one-head" in on_these_data) == (scale == "demo")
    assert any(design.printed and design.smallest is None for design in found.values())
    if scale == "paper":
        text = shown_designs("attention", list(found.values()))
        assert not on_these_data and "| unknown" in text and "if the run-to-run variance is known" in text


def test_plan_shows_the_smallest_effect_beside_the_printed_one(found):
    text = shown_designs("attention", list(found("attention").values()))
    (line,) = (line for line in text.split("\n") if line.startswith("| one-head "))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:4] == ["one-head", "primary", "perplexity", "3 and 3"]
    assert float(cells[4]) == pytest.approx(found("attention")["one-head"].smallest, rel=0.05)
    assert cells[5] == "0.073"
    assert "of 20 trainings of toy/system at scale demo" in text


RECORDS = ["read-aloud/*-attention-source-*", "read-aloud/*-CF4-*", "multi30k/readings/attention-C1-*"]


@pytest.mark.parametrize("pattern", [*RECORDS, "**/*-ctc-an4-*"])
def test_forecast_flops_are_near_those_of_a_finished_training(pattern):
    (path, *_) = sorted((ROOT / "docs/measured").glob(f"{pattern}seed1.json"))
    record = RunRecord.read(path)
    assert record.trained.steps == record.run.training.max_steps and record.cost
    assert training_flops(record.run) == pytest.approx(record.cost.total.flops, rel=0.25)
