"""Smallest effect that the claims of a paper can detect, beside the printed one, before any run.

A design is a number of trainings of each system. Its noise is that of many trainings of one such system, measured once
(docs/measured/noise). Its degrees of freedom are pooled over the systems that its claims name.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.claims.claim import Claim
from pipeline.analysis.claims.measurements import NoisePools
from pipeline.analysis.claims.scores import RatioClaim, ScoreClaim
from pipeline.analysis.evidence import Evidence, Scale
from pipeline.analysis.view import PaperView
from pipeline.core.records.training import MeasuredNoise
from pipeline.metrics import metric_named, metric_names
from pipeline.papers.printed_scores import printed_score
from pipeline.papers.project import Project


@dataclass(frozen=True)
class Design:
    """The design of one comparison of a claim, between two systems or factors; effects are on the scale of the verdict.

    Attributes:
        name: Name of the claim.
        primary: Whether it belongs to the primary claims.
        quantity: The metric.
        seeds: Number of trainings of each system.
        smallest: Smallest detectable effect; None if no noise was measured at this scale and on this data.
        printed: Printed effect; None if the paper prints none.
        noise: Where the noise was measured; empty if it is unknown.
    """

    name: str
    primary: bool
    quantity: str
    seeds: list[int]
    smallest: float | None
    printed: float | None
    noise: str


def designs(project: Project, paper: str) -> Iterator[Design]:
    """Yield the design of every claim of several systems that has one, whether or not the noise is known."""
    claims, view = project.claims[paper], PaperView(project, paper)
    tested = {name: claim for name, claim in claims.claims.items() if claim.is_tested(project.config.scale)}
    pools = NoisePools(view, claims.model_copy(update={"claims": tested}).systems)
    for name, claim in tested.items():
        for end, link in claim.links().items():
            if (compared := link.design(claims.scores)) is None:
                continue
            quantity, dataset, systems = compared
            if len(systems) < 2:
                continue
            seeds = [len(view.runs(system, dataset)) for system in systems]
            scale, shown = scale_of(quantity), quantity
            if isinstance(link, RatioClaim):
                scale, shown = np.log, f"log {quantity}"
            noise = noise_here(project, pools, systems, dataset, quantity)
            degrees = sum(len(view.runs(system, dataset)) - 1 for system in pools.alike(systems[0], dataset).values())
            smallest = smallest_effect(scale(np.array(noise.values[quantity])), seeds, degrees) if noise else None
            printed = printed_effect(project, paper, link, scale)
            title = noise.title if noise else ""
            yield Design(name + end, name in claims.primary, shown, seeds, smallest, printed, title)


def noise_here(
    project: Project, pools: NoisePools, systems: list[str], dataset: str, quantity: str
) -> MeasuredNoise | None:
    """Return the noise of a quantity that was measured at this scale, on this data and with this kind of system.

    Args:
        project: The project.
        pools: Families of the paper's systems.
        systems: Systems that are compared.
        dataset: Dataset that they are trained on, as the papers name it.
        quantity: Metric, or another number of a training.

    Returns:
        None if it was not measured, or if the systems are of several families.
    """
    families = {pools.family(system, dataset) for system in systems}
    noise = project.noise_of(families.pop()) if len(families) == 1 else None
    if noise is None or quantity not in noise.values:
        return None
    trained_on = pools.view.runs(systems[0], dataset)[0].dataset
    return noise if (noise.scale, noise.dataset) == (project.config.scale, trained_on) else None


def smallest_effect(values: np.ndarray, seeds: list[int], degrees_of_freedom: int) -> float:
    """Return the smallest effect that is significant at 5 % with a power of 80 %.

    Args:
        values: Numbers of many trainings of one system, on the scale of the effect, shape (trainings,).
        seeds: Number of trainings of each system.
        degrees_of_freedom: Degrees of freedom of the pooled variance; 0 if no system has two trainings.
    """
    squared = float(values.var(ddof=1)) * sum(1 / count for count in seeds)
    return Evidence("", 0.0, squared**0.5, degrees_of_freedom or len(values) - 1).detectable


def scale_of(quantity: str) -> Scale:
    """Return the comparison scale of a metric; any other quantity keeps its own."""
    return metric_named(quantity).comparison_scale if quantity in metric_names() else np.asarray


def printed_effect(project: Project, paper: str, claim: Claim, scale: Scale) -> float | None:
    """Return the printed difference of two terms or factors, larger first; None if no table prints all of them."""
    if not isinstance(claim, ScoreClaim):
        return None
    score = project.claims[paper].scores[claim.score]
    found = [printed_score(project, paper, term, score) for term in claim.compared]
    if None in found:
        return None
    first, *second = np.diff(scale(np.array(found, dtype=float)).reshape(-1, 2)).flatten().tolist()
    return second[0] - first if second else first
