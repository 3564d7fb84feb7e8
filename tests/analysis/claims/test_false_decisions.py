"""One system against itself: what is decided between trainings that differ by their seed alone is false.

The twenty trainings of docs/measured/noise are dealt out as six systems of three seeds, again and again. They go
through every kind of judgement between trainings; single ones are judged by the noise of all twenty. Upper bounds are
those of Clopper and Pearson at 95 %, one-sided, for as many judgements; these share trainings, so that they are no more
than a guide. Claims about gates and branches compare parts of one training, and have no such pairs.
"""

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from many_seeds import DATA, ROOT, Deal, ManySeeds, SeedFolders, judge, measure, remember_files, remember_resamples
from scipy.stats import beta, t
from shifted_seeds import SHIFT

from pipeline.analysis import training_curves
from pipeline.analysis.claims.verdicts import LEVEL, ClaimResult
from pipeline.analysis.training_curves import LossCurve, mean_gap
from pipeline.papers.project import load_project
from pipeline.planning.designs import scale_of, smallest_effect

SYSTEMS, SEEDS, DEALS, SHIFTED_DEALS, MANY_DEALS = 6, 3, 120, 40, 10_000
FAMILIES = {
    "transformer": ("attention", "C1", "wmt14-en-de"),
    "recurrent": ("multichannel", "RNN", "nist-zh-en"),
    "recogniser": ("coldfusion", "attention-source", "source"),
}
KINDS = {"transformer": 13, "recurrent": 13, "recogniser": 9}
BY_MANY_DEALS = {"recogniser": {"curves"}}
"""Kinds that are judged by ten thousand deals instead: of the 360 judgements here 27 are false, by luck."""
AT_MOST, KIND_AT_MOST = (1.2 * LEVEL, 1.5 * LEVEL) if SHIFT else (LEVEL, LEVEL)
"""Bounds of all kinds and of one kind; deals share trainings, so single kinds vary from 0 to 9 % with the seed."""
SINGLES_AT_MOST = {"transformer": LEVEL, "recurrent": LEVEL, "recogniser": 0.054}
"""39 of 950 are false for recognisers, which have fewer kinds, so that their bound is wider."""
NAMES = [f"X{number}" for number in range(SYSTEMS)]
PRIMARY = ["order", "order-perplexity", "ratio", "steps", "curves"]
AS_SINGLES = ("order", "order-perplexity", "steps", "equal_time", "curves", "training_loss")


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.fixture(scope="module", params=[name if name == "transformer" else slow(name) for name in FAMILIES])
def family(request):
    return request.param


@pytest.fixture(scope="module")
def many(family):
    return ManySeeds.of(family)


@pytest.fixture(scope="module")
def deal(family, many, tmp_path_factory):
    """Return all trainings before any is dealt to a system."""
    folder = tmp_path_factory.mktemp("seeds")
    project = load_project(ROOT, {"scale": "demo", "work": str(folder)})
    spec = project.run_spec(project.runs_of(*FAMILIES[family])[0])
    found = Deal(SeedFolders(folder, "demo", str, str), spec, noise=many.record)
    many.write(found)
    return found


@pytest.fixture(autouse=True)
def plateaus_aside(monkeypatch):
    """Trainings that still learn are as good to count false decisions by."""
    monkeypatch.setattr(training_curves, "PLATEAU", 1.0)
    remember_files(monkeypatch)
    remember_resamples(monkeypatch)


def every_kind(many: ManySeeds, a: str, b: str, c: str, d: str, level: float) -> dict[str, dict]:
    """Claims between systems that are the same, of every kind that compares trainings and whose scores were kept.

    level: of the first score, of all systems.
    """
    pair, (first, *_) = {"system": a, "baseline": b}, many.scores
    lowest = "ppl" if "ppl" in many.scores else first
    kinds = {
        "order": {"kind": "order", "score": first, "ascending": [a, b]},
        "order-perplexity": {"kind": "order", "score": "ppl", "ascending": [a, b]},
        "close": {"kind": "close", "score": first, "terms": [a, b], "margin": 0.25},
        "level": {"kind": "level", "score": first, "term": a, "at_least": level},
        "ratio": {"kind": "ratio", "score": lowest, "smaller": [a, b], "larger": [c, d]},
        "agreement": {"kind": "agreement", "scores": ["bleu", "gleu"], "pairs": [[a, b]]},
        "long_sentences": {"kind": "long_sentences", "score": "bleu", **pair, "longer_than": 20},
        "beyond_training": {"kind": "beyond_training", "score": "ppl", **pair, "longer": "test2"},
        "steps": {"kind": "steps", "dataset": DATA, **pair, "share": 1.0},
        "own_plateaus": {"kind": "own_plateaus", "dataset": DATA, **pair, "share": 1.0},
        "equal_time": {"kind": "equal_time", "dataset": DATA, **pair},
        "curves": {"kind": "curves", "dataset": DATA, **pair},
        "training_loss": {"kind": "training_loss", "dataset": DATA, "ascending": [a, b]},
    }
    used = {name: {claim.get("score"), *claim.get("scores", ())} - {None} for name, claim in kinds.items()}
    return {name: claim for name, claim in kinds.items() if used[name] <= {*many.scores}}


def dealt(deal: Deal, generator: np.random.Generator, count: int, first: int = 0) -> Deal:
    """Six systems; the seeds of every other one from number `first` on."""
    seeds = generator.permutation(count)[: SYSTEMS * SEEDS].reshape(SYSTEMS, SEEDS)
    seeds[::2] += first
    return replace(deal, seeds_of=dict(zip(NAMES, seeds.tolist(), strict=True)))


def kind(result: ClaimResult) -> str:
    return result.name.removesuffix("-1")


def false_before_adjustment(result: ClaimResult) -> bool:
    """Return whether a claim is decided falsely; a claim that values of one system are close is true."""
    assert result.found is not None
    decided = result.found.p_value is not None and result.found.p_value <= LEVEL
    return decided and (kind(result) != "close" or result.found.p_contradicted < result.found.p_upheld)


def upper_bound(false: int, of: int) -> float:
    return float(beta.ppf(0.95, false + 1, of - false))


@pytest.mark.slow
@pytest.mark.qa
def test_equal_trainings_are_decided_at_most_once_in_twenty(deal, many, family):
    """Before any adjustment in all, in no kind clearly more; after it, as claims are judged, far fewer."""
    generator = np.random.default_rng(0)
    everyone = replace(deal, seeds_of={"X0": list(range(many.count))})
    (whole,) = judge(measure(everyone), {"level": every_kind(many, *["X0"] * 4, 0.0)["level"]})
    level = whole.found.evidence[0].value
    false, judgements, decided = Counter(), Counter(), 0
    for _ in range(DEALS):
        measured = measure(dealt(deal, generator, many.count))
        for first in range(0, SYSTEMS, 2):
            names = [NAMES[(first + i) % SYSTEMS] for i in range(4)]
            kinds = every_kind(many, *names, level)
            found = judge(measured, kinds, [name for name in PRIMARY if name in kinds])
            judgements.update(map(kind, found))
            false.update(kind(result) for result in found if false_before_adjustment(result))
            decided += sum(result.verdict.is_decided and kind(result) != "close" for result in found)
    assert len(judgements) == KINDS[family] and set(judgements.values()) == {3 * DEALS}
    total = judgements.total()
    assert upper_bound(false.total(), total) <= AT_MOST
    assert upper_bound(decided, total) <= LEVEL / 2
    for name in false.keys() - BY_MANY_DEALS.get(family, set()):
        assert beta.ppf(0.05, false[name], judgements[name] - false[name] + 1) <= KIND_AT_MOST, name


def test_gaps_between_curves_are_false_in_five_percent(deal, many):
    """A reference that computes each gap once finds 4 to 7.5 % in a few hundred deals of twenty trainings."""
    steps, train, dev = (many.arrays[name] for name in ("steps", "train", "dev"))
    curves = [LossCurve(steps, *losses) for losses in zip(train, dev, strict=True)]
    gaps = np.array([[mean_gap(curve, other) for other in curves] for curve in curves])

    def referee(seeds: np.ndarray) -> tuple[np.ndarray, float]:
        """(three gaps, their standard error): systems 0 and 1, 2 and 3, 4 and 5, by the noise within all six."""
        within = gaps[seeds[:, :, None], seeds[:, None, :]].mean(axis=1)
        between = gaps[seeds[::2, :, None], seeds[1::2, None, :]].mean(axis=(1, 2))
        return between, float((within**2).sum() / (SYSTEMS * (SEEDS - 1)) * 2 / SEEDS) ** 0.5

    generator = np.random.default_rng(2)
    one_deal = dealt(deal, generator, many.count)
    between, error = referee(np.array([one_deal.seeds_of[name] for name in NAMES]))
    (found,) = judge(measure(one_deal), {"curves": every_kind(many, *NAMES[:4], 0.0)["curves"]})
    (evidence,) = found.found.evidence
    assert np.allclose([evidence.value, evidence.error], [between[0], error])
    deals = (generator.permutation(many.count)[: SYSTEMS * SEEDS].reshape(SYSTEMS, SEEDS) for _ in range(MANY_DEALS))
    ratios = np.abs([between / error for between, error in map(referee, deals)])
    assert np.mean(ratios >= t.isf(LEVEL / 2, evidence.degrees_of_freedom)) == pytest.approx(LEVEL, abs=0.005)


def test_single_equal_seeds_are_decided_once_in_twenty(deal, many, family):
    """The recorded noise is used. Without it, ten of ten curves and seven of ten losses differed significantly."""
    false, judgements, verdicts = 0, 0, set()
    for first, other in combinations(range(many.count), 2):
        kinds = every_kind(many, "X0", "X1", "", "", 0.0)
        kinds = {name: kinds[name] for name in AS_SINGLES if name in kinds}
        found = judge(measure(replace(deal, seeds_of={"X0": [first], "X1": [other]})), kinds)
        false += sum(map(false_before_adjustment, found))
        judgements += len(found)
        verdicts |= {str(judged.verdict) for judged in found}
    assert upper_bound(false, judgements) <= SINGLES_AT_MOST[family]
    assert verdicts <= {"not distinguishable", "provisional upheld", "provisional contradicted"}


def test_losses_before_the_end_have_the_noise_of_their_step(deal, many):
    """The baseline's losses are raised to the mean of the system's after a third of the steps, so that both are equal.

    By the noise of final losses, less than half of that after a third, 18 % were decided.
    """
    every, dev = int(many.arrays["steps"][0]), many.arrays["dev"]
    steps = every * np.arange(1, dev.shape[1] + 1)
    reached = np.mean([np.interp(steps[-1] / 3, steps, losses) for losses in dev])
    equal = 2 * many.count
    many.raised(float(reached - dev.min(axis=1).mean())).write(deal, first=equal)
    generator, decided = np.random.default_rng(0), []
    for _ in range(SHIFTED_DEALS):
        measured = measure(dealt(deal, generator, many.count, first=equal))
        pairs = {f"{i}": {"system": NAMES[i + 1], "baseline": NAMES[i]} for i in range(0, SYSTEMS, 2)}
        claims = {name: {"kind": "steps", "dataset": DATA, **pair, "share": 1 / 3} for name, pair in pairs.items()}
        decided += [result.found.p_value <= LEVEL for result in judge(measured, claims)]
    assert np.mean(decided) <= 2 * LEVEL


SEEN = {"order-perplexity": "perplexity", "steps": "dev_loss"}
ERRORS_AT_MOST = 4 if SHIFT else 3
"""Standard errors from 80 %; thirty other seeds were spread 1.1 times as far, as deals share trainings."""


@pytest.mark.parametrize(
    ("family", "name"),
    [
        *(("transformer", "order-perplexity"), slow("transformer", "steps"), slow("recogniser", "steps")),
        *(slow("recurrent", "order-perplexity"), slow("recurrent", "steps")),
    ],
    indirect=["family"],
    scope="module",
)
def test_detectable_effect_is_found_four_times_in_five(deal, many, name):
    """Fabricated: losses of every other system raised by that much."""
    values = scale_of(SEEN[name])(np.array(many.record.values[SEEN[name]]))
    effect = smallest_effect(values, [SEEDS, SEEDS], SYSTEMS * (SEEDS - 1))
    many.raised(effect).write(deal, first=many.count)
    generator, seen = np.random.default_rng(1), []
    for _ in range(SHIFTED_DEALS):
        shifted = measure(dealt(deal, generator, many.count, first=many.count))
        for first in range(0, SYSTEMS, 2):
            claims = every_kind(many, NAMES[first + 1], NAMES[first], *NAMES[:2], 0.0)
            (found,) = (result.found for result in judge(shifted, {name: claims[name]}))
            seen.append(found.p_value <= LEVEL and found.p_upheld < found.p_contradicted)
    assert abs(np.mean(seen) - 0.8) <= ERRORS_AT_MOST * (0.16 / len(seen)) ** 0.5
