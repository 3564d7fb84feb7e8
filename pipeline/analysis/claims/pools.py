"""Noise between trainings, pooled over the systems of a kind that a paper's claims name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from pipeline.analysis.evidence import freedom
from pipeline.analysis.view import PaperView
from pipeline.core.errors import UserError

Values = Sequence[float] | np.ndarray
"""A number of each training of a system."""


class NotRun(Exception):
    """Something that a claim stands on was not measured."""


@dataclass(frozen=True)
class Pools:
    view: PaperView
    systems: Sequence[str] = ()
    known: dict[tuple[str, ...], np.ndarray] = field(default_factory=dict)
    """What was read, by system, dataset and quantity."""

    def pool(
        self, system: str, dataset: str, quantity: str, values: Callable[[str], Values], of: str = ""
    ) -> tuple[tuple[np.ndarray, ...], str]:
        """A quantity by seed of each system of the kind of `system` that is trained on the same data, and whence it is.

        Where no system has two seeds: what was measured once and for all of such systems. Nothing: of itself.

        Args:
            values: of any system; of: what the quantity is of.
        """
        family, alike = self.family(system, dataset), self.alike(system, dataset)
        groups = [self.read(one, (name, quantity, of), values) for name, one in sorted(alike.items())]
        if degrees := freedom(found := tuple(group for group in groups if len(group))):
            return found, f"pooled over {len(found)} systems ({family}, {degrees} degrees of freedom)"
        measured = self.view.experiment.noise_of(family)
        if measured and quantity in measured.values and len(self.view.runs(system, dataset)) < 2:
            return (np.array(measured.values[quantity]),), measured.title
        return (), ""

    def alike(self, system: str, dataset: str) -> dict[str, str]:
        """Systems of the kind of `system` that are trained on the same data, by their training."""
        family, data = self.family(system, dataset), self.corpus(system, dataset)
        return {
            self.training(one, dataset): one
            for one in (*self.systems, system)
            if self.family(one, dataset) == family and self.corpus(one, dataset) == data
        }

    def read(self, system: str, key: tuple[str, ...], values: Callable[[str], Values]) -> np.ndarray:
        """Empty where they were not measured."""
        if key not in self.known:
            try:
                self.known[key] = np.array(values(system), dtype=float)
            except (NotRun, UserError):
                self.known[key] = np.array([])
        return self.known[key]

    def training(self, system: str, dataset: str) -> str:
        """What the runs of a system have in common."""
        return "/".join((*self.view.experiment.locate(system, self.view.paper), dataset))

    def corpus(self, system: str, dataset: str) -> str:
        return self.view.runs(system, dataset)[0].dataset

    def family(self, system: str, dataset: str) -> str:
        return self.view.experiment.run_spec(self.view.runs(system, dataset)[0]).model.family
