"""Verdicts of all claims of a paper, adjusted for how many are tested together.

- A paper's primary claims are named before its runs. Holm (1979) bounds the probability that any of them is decided
  falsely by 5 %.
- Among its other claims, and among those about times of layers, Benjamini and Hochberg (1995) bound the expected share
  of false decisions by 5 %.
- A verdict is provisional while a system has fewer than three trainings. Such claims are not decisions, so the false
  discovery rate is bounded without them. Otherwise each significant one would loosen the bound for the others.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

import numpy as np

from pipeline.analysis.claims.claim import Claim, Findings
from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.run_folders import NotRun
from pipeline.analysis.training_curves import not_at_plateau, over_fitted
from pipeline.core.artifacts import Trained

LEVEL = 0.05
ENOUGH_SEEDS = 3

Group = Literal["primary", "other", "timing", "identity"]
Faults = tuple[type[Exception], ...]


class Verdict(StrEnum):
    """Outcome of a claim."""

    UPHELD = "upheld"
    PROVISIONALLY_UPHELD = "provisional upheld"
    CONTRADICTED = "contradicted"
    PROVISIONALLY_CONTRADICTED = "provisional contradicted"
    NOT_DISTINGUISHABLE = "not distinguishable"
    NOT_TRAINED = "not trained"
    NOT_TRAINED_FAR_ENOUGH = "not trained far enough"
    NOT_RUN = "not run"
    TESTED = "tested"

    @property
    def is_decided(self) -> bool:
        """Return whether it counts as a decision."""
        return self in (self.UPHELD, self.CONTRADICTED)


@dataclass(frozen=True)
class ClaimResult:
    """The verdict on one claim, or on one link of a chain of claims."""

    name: str
    claim: Claim
    group: Group
    verdict: Verdict
    why: str = ""
    """Reason why it cannot be decided, or a caveat if it can."""
    found: Findings | None = None
    p_value: float | None = None
    """Two-sided, adjusted for the claims of the same group."""


def evaluate_claims(
    claims: Mapping[str, Claim], primary: Collection[str], measured: Measurements, faults: Faults = (NotRun,)
) -> list[ClaimResult]:
    """Evaluate every link of every claim, in order.

    Returns:
        One result for each link, with its adjusted p-value if the claim can be decided.
    """
    results = [
        evaluate_claim(name + suffix, link, group_of(link, name in primary), measured, faults)
        for name, claim in claims.items()
        for suffix, link in claim.links().items()
    ]
    families: dict[tuple[Group, bool], list[int]] = {}
    tested = [i for i, result in enumerate(results) if result.p_value is not None]
    provisional = {i: fewest_seeds(results[i].claim, measured) < ENOUGH_SEEDS for i in tested}
    for i in tested:
        families.setdefault((results[i].group, provisional[i] and results[i].group != "primary"), []).append(i)
    for (group, _), family in families.items():
        p_values = ADJUSTMENTS[group]([results[i].p_value or 0.0 for i in family])
        for i, p_value in zip(family, p_values, strict=True):
            results[i] = with_verdict(replace(results[i], p_value=p_value), provisional[i])
    return results


def group_of(claim: Claim, primary: bool) -> Group:
    """Return the group of claims with which a claim is adjusted."""
    match claim.about:
        case "identity":
            return "identity"
        case "layers":
            return "timing"
    return "primary" if primary else "other"


def evaluate_claim(name: str, claim: Claim, group: Group, measured: Measurements, faults: Faults) -> ClaimResult:
    """Evaluate one claim without adjustment; the result has a p-value only if it can decide the claim."""
    try:
        found = claim.findings(measured)
        baselines, winner = claim.baselines(measured.scores), claim.expected_winner(measured.scores)
        contradicts = found.p_value is not None and found.p_value <= LEVEL and not found.favours_claim
        curves = {
            training: [measured.folders.loss_curve(run) for run in measured.view.runs(*training)]
            for training in baselines + winner
        }
        unfinished = not_at_plateau(baselines + winner if contradicts else baselines, curves)
        unfinished = unfinished or (found.still_learning if contradicts else "")
        caveat = over_fitted(curves)
    except faults as missing:
        return ClaimResult(name, claim, group, Verdict.NOT_RUN, str(missing))
    if claim.about == "identity":
        return ClaimResult(name, claim, group, Verdict.TESTED, "", found)
    if found.not_trained:
        return ClaimResult(name, claim, group, Verdict.NOT_TRAINED, found.not_trained, found)
    if unfinished:
        return ClaimResult(name, claim, group, Verdict.NOT_TRAINED_FAR_ENOUGH, unfinished, found)
    return ClaimResult(name, claim, group, Verdict.NOT_DISTINGUISHABLE, caveat, found, found.p_value)


def with_verdict(result: ClaimResult, provisional: bool) -> ClaimResult:
    """Return a result with the verdict, `provisional` or not, if its adjusted p-value is significant at 5 %."""
    assert result.found is not None and result.p_value is not None, "it was evaluated"
    if result.p_value > LEVEL:
        return result
    upheld = result.found.favours_claim
    if provisional:
        verdict = Verdict.PROVISIONALLY_UPHELD if upheld else Verdict.PROVISIONALLY_CONTRADICTED
    else:
        verdict = Verdict.UPHELD if upheld else Verdict.CONTRADICTED
    return replace(result, verdict=verdict)


def fewest_seeds(claim: Claim, measured: Measurements) -> int:
    """Return the smallest number of trainings of any system that a claim needs; `ENOUGH_SEEDS` if it needs none."""
    artifacts = claim.needs(measured.view, measured.scores)
    runs = {artifact.run for artifact in artifacts if isinstance(artifact, Trained)}
    return min(Counter((run.paper, run.system, run.dataset) for run in runs).values(), default=ENOUGH_SEEDS)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm (1979), which bounds the family-wise error rate."""
    ordered = np.argsort(p_values)
    steps = np.maximum.accumulate((len(p_values) - np.arange(len(p_values))) * np.sort(p_values))
    return np.minimum(1, steps)[np.argsort(ordered)].tolist()


def false_discovery(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Benjamini and Hochberg (1995), which bounds the false discovery rate."""
    from scipy.stats import false_discovery_control

    return false_discovery_control(p_values).tolist() if p_values else []


ADJUSTMENTS: dict[Group, Callable[[Sequence[float]], list[float]]] = {
    "primary": holm,
    "other": false_discovery,
    "timing": false_discovery,
}
