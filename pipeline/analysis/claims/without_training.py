"""Claims that need no training: times of layers on this machine, and identities that tests prove."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from pipeline.analysis.claims.claim import Claim, Findings
from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.evidence import Evidence, over_seeds, within_bounds
from pipeline.analysis.reference_types import LayerName, TestName
from pipeline.analysis.run_folders import NotRun
from pipeline.analysis.view import PaperView, Scores
from pipeline.core.artifacts import Artifact, LayerTimes
from pipeline.core.errors import count_of
from pipeline.core.records.outputs import LayerCosts
from pipeline.core.schema import Number


@dataclass(frozen=True)
class LayerTimings:
    """Times of every layer at several lengths and widths, with repeats."""

    record: LayerCosts

    @classmethod
    def read(cls, path: Path) -> "LayerTimings":
        """Read the file that the stage `layer-times` wrote."""
        return cls(LayerCosts.read(path))

    @cached_property
    def seconds(self) -> dict[tuple[str, int, int], np.ndarray]:
        """Return the seconds of each repeat by (layer, n, d)."""
        return {(timing.layer, timing.n, timing.d): np.array(timing.seconds) for timing in self.record.times}

    @property
    def lengths(self) -> list[int]:
        """Return the measured lengths n in rising order."""
        return sorted({n for _, n, _ in self.seconds})

    @property
    def widths(self) -> list[int]:
        """Return the measured widths d in rising order."""
        return sorted({d for _, _, d in self.seconds})

    @property
    def description(self) -> str:
        """Describe the repeats and the device."""
        repeats = len(next(iter(self.seconds.values())))
        device = f"one core of {self.record.device}" if self.record.on_processor else self.record.device
        return f"{count_of(repeats, 'repeat')} on {device}"

    def exponents(self, layer: str, variable: str) -> list[float]:
        """Fit log t = c + p log n + q log d by least squares over the upper half of the sizes.

        Smaller sizes are left out because there a call has a fixed cost that hides the layer's.

        Args:
            layer: Name of the layer.
            variable: `n` or `d`.

        Returns:
            p (for `n`) or q (for `d`) of each repeat.
        """
        lengths, widths = upper_half(self.lengths), upper_half(self.widths)
        sizes = list(product(lengths, widths))
        design = np.array([(1, np.log(n), np.log(d)) for n, d in sizes])
        logs = np.log([self.seconds[layer, n, d] for n, d in sizes])
        slopes = np.linalg.lstsq(design, logs, rcond=None)[0]
        return slopes[1 if variable == "n" else 2].tolist()

    def cheaper_below_width(self, layer: str, than: str) -> list[Evidence]:
        """Test at every size with n < d how many times longer another layer takes, minus one.

        Args:
            layer: Name of the layer that should be cheaper.
            than: Name of the other layer.

        Returns:
            One piece of evidence per size, with a t test over repeats.
        """
        return [
            over_seeds(f"n = {n}, d = {d}", (self.seconds[than, n, d] / self.seconds[layer, n, d] - 1).tolist())
            for n, d in product(self.lengths, self.widths)
            if n < d
        ]

    def log_ratios(self, layer: str, than: str) -> np.ndarray:
        """Return the mean logarithm of t(layer) / t(than), shape (repeats,).

        The mean covers the larger halves of n and d, without sizes at which either layer was not timed.

        Args:
            layer: Name of the layer.
            than: Name of the layer that it is compared with.
        """
        sizes = product(upper_half(self.lengths), upper_half(self.widths))
        pairs = [(self.seconds.get((layer, n, d)), self.seconds.get((than, n, d))) for n, d in sizes]
        return np.mean(
            [np.log(first / other) for first, other in pairs if first is not None and other is not None], axis=0
        )


def upper_half(sizes: list[int]) -> list[int]:
    """Return the larger half of the sizes, and one more size below if there are more than three."""
    return sizes[len(sizes) // 2 - (len(sizes) > 3) :]


class LayerClaim(Claim):
    """A claim about times of layers."""

    about = "layers"

    layer: LayerName = Field(description="Layer type, as in the measurement")

    def needs(self, view: PaperView, scores: Scores) -> Iterator[Artifact]:
        yield LayerTimes()

    def timings(self, measured: Measurements) -> LayerTimings:
        """Return the measured times of every layer at every size.

        Raises:
            NotRun: They are missing.
        """
        return LayerTimings.read(measured.folders.require(LayerTimes()))


class ExponentClaim(LayerClaim):
    """Time of a layer grows as a power of the sequence length or the width, with an exponent in a range."""

    kind: Literal["exponent"]
    variable: Literal["n", "d"] = Field(description="Sequence length or width")
    at_least: Number
    at_most: Number

    def evaluate(self, measured: Measurements) -> Findings:
        """Fit the exponent in each repeat and test it against both bounds."""
        times = self.timings(measured)
        exponents = times.exponents(self.layer, self.variable)
        evidence = within_bounds(f"exponent of {self.variable}", exponents, self.at_least, self.at_most)
        mean = over_seeds("", exponents).value
        return Findings(f"{self.variable}^{mean:.2f}", evidence, times.description)


class CheaperClaim(LayerClaim):
    """A layer takes less time than another if the sequence is shorter than the width."""

    kind: Literal["cheaper_below_width"]
    than: LayerName

    def evaluate(self, measured: Measurements) -> Findings:
        """Compare the layers at every size whose length is below its width."""
        times = self.timings(measured)
        evidence = times.cheaper_below_width(self.layer, self.than)
        ours = "; ".join(f"{effect.name}: {1 + effect.value:.1f} times" for effect in evidence)
        return Findings(ours, evidence, times.description)


class TimeRatioClaim(LayerClaim):
    """A layer takes at most a given multiple of another's time, on average over the larger half of the sizes."""

    kind: Literal["time_ratio"]
    than: LayerName
    at_most: Number = Field(gt=0, description="Largest ratio of the times")

    def evaluate(self, measured: Measurements) -> Findings:
        """Compare the mean logarithm of the ratio in each repeat with its bound.

        Returns:
            One quantity, with a t test over repeats.

        Raises:
            NotRun: The times of a layer are missing.
        """
        times = self.timings(measured)
        if missing := {self.layer, self.than} - {layer for layer, *_ in times.seconds}:
            raise NotRun(
                f"{measured.folders.require(LayerTimes())} has no times of {', '.join(sorted(missing))}; remove it"
            )
        logs = times.log_ratios(self.layer, self.than)
        evidence = over_seeds(f"logarithm of {self.at_most:g} − that of the ratio", np.log(self.at_most) - logs)
        return Findings(f"{np.exp(logs.mean()):.2f} times as long", [evidence], times.description)


class ProvedClaim(Claim):
    """A statement that needs no training."""

    about = "identity"

    kind: Literal["test"]
    tests: list[TestName] = Field(min_length=1, description="file::name of the tests that prove it")

    def evaluate(self, measured: Measurements) -> Findings:
        """Return the names of the tests that prove the statement; there is nothing to measure."""
        return Findings("", [], "; ".join(self.tests))
