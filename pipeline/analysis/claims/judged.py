"""All claims of a paper with their verdicts, which depend on how many are judged at once.

Upheld or contradicted is what chance alone would bring about in one of twenty papers at most: among a paper's primary
claims, named before its runs, in none of them (Holm 1979), among its others in a share of those that are decided
(Benjamini and Hochberg 1995). It is provisional as long as a system has fewer than three trainings.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

import numpy as np

from pipeline.analysis.claims.claim import Claim, Findings
from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.claims.pools import NotRun
from pipeline.analysis.training_curves import LossCurve
from pipeline.core.artifacts import Trained

LEVEL = 0.05
ENOUGH_SEEDS = 3
PLATEAU = 0.005
"""The lowest dev loss of a system at its plateau may fall by this share over the last fifth of its updates."""
OVER_FITTED = 0.05
"""A last dev loss above the lowest by this share is said beside the verdict, which it does not change."""

Group = Literal["primary", "other", "timing", "identity"]
System = tuple[str, str]
"""Its name, and the dataset that it is trained on."""
Faults = tuple[type[Exception], ...]


class Verdict(StrEnum):
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
        return self in (self.UPHELD, self.CONTRADICTED)


@dataclass(frozen=True)
class Judged:
    """One claim, or one link of a chain of them."""

    name: str
    claim: Claim
    group: Group
    verdict: Verdict
    why: str = ""
    """Why it can't be decided whatever was measured, or what to mind where it can."""
    found: Findings | None = None
    p_value: float | None = None
    """Two-sided, adjusted for the claims that were judged with it."""


def judge_all(
    claims: Mapping[str, Claim], primary: Collection[str], measured: Measurements, faults: Faults = (NotRun,)
) -> list[Judged]:
    """Every link of every claim, in their order. faults: what makes a claim count as not run."""
    found = [
        judged(name + end, link, group_of(link, name in primary), measured, faults)
        for name, claim in claims.items()
        for end, link in claim.links().items()
    ]
    for group, adjusted in (("primary", holm), ("other", false_discovery), ("timing", false_discovery)):
        family = [i for i, one in enumerate(found) if one.group == group and one.p_value is not None]
        p_values = adjusted([found[i].p_value or 0.0 for i in family])
        for i, p_value in zip(family, p_values, strict=True):
            found[i] = decided(replace(found[i], p_value=p_value), measured)
    return found


def group_of(claim: Claim, primary: bool) -> Group:
    match claim.about:
        case "identity":
            return "identity"
        case "layers":
            return "timing"
    return "primary" if primary else "other"


def judged(name: str, claim: Claim, group: Group, measured: Measurements, faults: Faults) -> Judged:
    """With what was found and a p-value of its own; without a p-value where that decides nothing."""
    try:
        found = claim.findings(measured)
        baselines, favoured = claim.baselines(measured.scores), claim.favoured(measured.scores)
        against = found.p_value is not None and found.p_value <= LEVEL and not found.is_for
        curves = {one: [measured.curve(run) for run in measured.view.runs(*one)] for one in baselines + favoured}
        unfinished = not_at_plateau(baselines + favoured if against else baselines, curves)
        mind = over_fitted(curves)
    except faults as missing:
        return Judged(name, claim, group, Verdict.NOT_RUN, str(missing))
    if claim.about == "identity":
        return Judged(name, claim, group, Verdict.TESTED, "", found)
    if found.not_trained:
        return Judged(name, claim, group, Verdict.NOT_TRAINED, found.not_trained, found)
    if unfinished:
        return Judged(name, claim, group, Verdict.NOT_TRAINED_FAR_ENOUGH, unfinished, found)
    return Judged(name, claim, group, Verdict.NOT_DISTINGUISHABLE, mind, found, found.p_value)


def not_at_plateau(systems: Iterable[System], curves: Mapping[System, Sequence[LossCurve]]) -> str:
    """Which system was still learning, in words; empty if none."""
    for one in systems:
        if (gain := float(np.mean([curve.late_gain for curve in curves[one]]))) >= PLATEAU:
            fell = f"fell by {gain:.1%} over" if np.isfinite(gain) else "was not measured before"
            return f"{one[0]}: its dev loss {fell} the last fifth of its updates"
    return ""


def over_fitted(curves: Mapping[System, Sequence[LossCurve]]) -> str:
    """Which systems ended far above their lowest dev loss, in words; empty if none."""
    rises = [(system, np.mean([curve.rise for curve in of_seeds])) for (system, _), of_seeds in curves.items()]
    return "; ".join(f"{one}: its dev loss ended {by:.0%} above its lowest" for one, by in rises if by >= OVER_FITTED)


def decided(one: Judged, measured: Measurements) -> Judged:
    """The verdict of a claim whose p-value is adjusted."""
    assert one.found is not None and one.p_value is not None, "it was judged"
    if one.p_value > LEVEL:
        return one
    upheld = one.found.is_for
    if fewest_seeds(one.claim, measured) < ENOUGH_SEEDS:
        verdict = Verdict.PROVISIONALLY_UPHELD if upheld else Verdict.PROVISIONALLY_CONTRADICTED
    else:
        verdict = Verdict.UPHELD if upheld else Verdict.CONTRADICTED
    return replace(one, verdict=verdict)


def fewest_seeds(claim: Claim, measured: Measurements) -> int:
    """Of the systems that are trained for a claim; enough where none is."""
    products = claim.needs(measured.view, measured.scores)
    runs = {product.run for product in products if isinstance(product, Trained)}
    return min(Counter((run.paper, run.system, run.dataset) for run in runs).values(), default=ENOUGH_SEEDS)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted, so that one of those at or below the level is false with that probability at most."""
    ordered = np.argsort(p_values)
    steps = np.maximum.accumulate((len(p_values) - np.arange(len(p_values))) * np.sort(p_values))
    return np.minimum(1, steps)[np.argsort(ordered)].tolist()


def false_discovery(p_values: Sequence[float]) -> list[float]:
    """Adjusted, so that of those at or below the level that share is false, at most and on average."""
    from scipy.stats import false_discovery_control

    return false_discovery_control(p_values).tolist() if p_values else []
