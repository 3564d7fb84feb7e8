"""Groups of claims that are adjusted together, and the method of each, when a paper's claims are evaluated.

Claims here have a known p-value. The oracle writes both step-wise definitions out in plain Python.
"""

from types import SimpleNamespace
from typing import Literal

import numpy as np
import pytest
from scipy.stats import norm

from pipeline.analysis.claims.claim import Claim, Findings
from pipeline.analysis.claims.verdicts import LEVEL, Verdict, evaluate_claims
from pipeline.analysis.evidence import Evidence
from pipeline.core.artifacts import RunId, Trained

WORDS = {"statement": "It is so.", "printed": "Table 9"}
COUNTS = {"primary": 4, "other": 7, "timing": 5, "identity": 2}


class Known(Claim):
    """A claim with a given two-sided p-value that speaks for it."""

    kind: Literal["known"] = "known"
    p: float

    def evaluate(self, measured):
        return Findings("", [Evidence("", float(norm.isf(self.p / 2)), 1.0)], "")


class KnownOfOneSeed(Known):
    def needs(self, view, scores):
        yield Trained(RunId("paper", "system", "data", 1))


class KnownTiming(Known):
    about = "layers"


class KnownIdentity(Known):
    about = "identity"


KINDS = {"primary": Known, "other": Known, "timing": KnownTiming, "identity": KnownIdentity}


def holm_by_definition(p_values):
    """Step down: the i-th smallest of m times m - i + 1, never below an earlier one."""
    adjusted, largest = {}, 0.0
    for rank, p in enumerate(sorted(p_values)):
        largest = max(largest, (len(p_values) - rank) * p)
        adjusted[p] = min(1.0, largest)
    return adjusted


def false_discovery_by_definition(p_values):
    """Step up: the i-th smallest of m times m / i, never above a later one."""
    adjusted, smallest = {}, 1.0
    for rank, p in reversed(list(enumerate(sorted(p_values), start=1))):
        smallest = min(smallest, len(p_values) * p / rank)
        adjusted[p] = smallest
    return adjusted


METHODS = {"primary": holm_by_definition} | dict.fromkeys(("other", "timing"), false_discovery_by_definition)


@pytest.fixture(params=range(5))
def claims(request):
    """Claims of all groups in a random order, named `<group>-<number>`."""
    generator = np.random.default_rng(request.param)
    names = [f"{group}-{number}" for group, count in COUNTS.items() for number in range(count)]
    generator.shuffle(names)
    return {name: KINDS[name.partition("-")[0]](**WORDS, p=generator.uniform(0, 0.08)) for name in names}


def evaluated(claims):
    view = SimpleNamespace(layout=SimpleNamespace(scale="demo"))
    measured = SimpleNamespace(view=view, scores={}, above_perplexity_floor=lambda trainings: "")
    return evaluate_claims(claims, [name for name in claims if name.startswith("primary")], measured)


@pytest.mark.parametrize("group", METHODS)
def test_each_group_is_adjusted_alone_by_its_method(claims, group):
    own = [claim.p for name, claim in claims.items() if name.startswith(group)]
    expected = METHODS[group](own)
    assert holm_by_definition(own) != pytest.approx(false_discovery_by_definition(own)), "the methods don't differ here"
    found = {result.claim.p: result for result in evaluated(claims) if result.group == group}
    assert {p: result.p_value for p, result in found.items()} == pytest.approx(expected)
    for p, result in found.items():
        upheld = expected[p] <= LEVEL
        assert result.verdict is (Verdict.UPHELD if upheld else Verdict.NOT_DISTINGUISHABLE)


def test_results_keep_order_and_identities_have_no_p_value(claims):
    found = evaluated(claims)
    assert [result.name for result in found] == list(claims)
    assert all(result.name.startswith(result.group) for result in found)
    identities = [result for result in found if result.group == "identity"]
    assert {(result.verdict, result.p_value) for result in identities} == {(Verdict.TESTED, None)}


def test_provisional_claims_loosen_no_decision():
    """Beside twenty certain claims of one seed, p-values of 0.04 and 0.5 are adjusted as if they were alone."""
    claims = {f"{group}-{p}": Known(**WORDS, p=p) for group in ("primary", "other") for p in (0.04, 0.5)}
    claims |= {f"{group}-{n}": KnownOfOneSeed(**WORDS, p=1e-9) for group in ("primary", "other") for n in range(20)}
    found = {result.name: result for result in evaluated(claims)}
    assert [found[f"other-{p}"].p_value for p in (0.04, 0.5)] == pytest.approx([0.08, 0.5])
    assert [found[f"primary-{p}"].p_value for p in (0.04, 0.5)] == pytest.approx([0.08, 0.5])
    assert found["other-0.04"].verdict is Verdict.NOT_DISTINGUISHABLE
    assert {found[f"other-{n}"].verdict for n in range(20)} == {Verdict.PROVISIONALLY_UPHELD}
