from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from pipeline.analysis.claims.claim import Findings, Number
from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.claims.scores import RESAMPLED
from pipeline.analysis.claims.terms import Scores
from pipeline.analysis.claims.trainings import AboutTraining
from pipeline.analysis.evidence import contrast, sample
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import Gates, Product
from pipeline.metrics.statistics.rates import mean

WordKind = Literal["names", "rare_names", "idioms", "function_words"]
"""Of source words, see pipeline/probes/gate_values.py."""

FEWEST_WORDS = 20
"""Without which a mean over words says nothing."""


class GateClaim(AboutTraining):
    """The gate between two channels has another mean over one kind of source words than over another, in all
    test sets of the grammar."""

    kind: Literal["gate_values"]
    channel: Literal["rnn", "emb"] = Field(description="Weighed by 1 - z, against the channels before it by z")
    words: Annotated[list[WordKind], Field(min_length=2, max_length=2)] = Field(description="Kinds of source words")
    direction: Literal["rising", "either"] = Field(
        description="rising: z is larger over the second kind; either: it differs"
    )
    margin: Number = Field(default=0, ge=0, description="What the difference has to exceed")

    def needs(self, view: PaperView, scores: Scores) -> Iterator[Product]:
        for trained in view.trained(self.systems, self.dataset):
            yield from (trained, Gates(trained.run))

    def judge(self, measured: Measurements) -> Findings:
        samples = []
        for kind in self.words:
            runs = measured.view.runs(self.system, self.dataset)
            rows = [measured.gates(run, f"{self.channel}.{kind}") for run in runs]
            if min(one[:, 1].sum() for one in rows) < FEWEST_WORDS:
                return Findings(f"fewer than {FEWEST_WORDS} words of {kind}", [], "")
            samples.append(sample([[one] for one in rows], mean, self.dataset))
        (one, other), (first, second) = self.words, samples
        sign = -1 if self.direction == "either" and second.mean < first.mean else 1
        name = f"{other} less {one}" if sign > 0 else f"{one} less {other}"
        name += f" less {self.margin:g}" if self.margin else ""
        evidence = contrast(f"mean z of {name}", [(sign, second), (-sign, first)], -self.margin)
        ours = f"mean z: {one} {first.mean:.3f}, {other} {second.mean:.3f}"
        return Findings(ours, [evidence], RESAMPLED)
