"""Claims about scores that claims.yaml names."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence

from pydantic import Field

from pipeline.analysis.claims.claim import Claim, Findings
from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.claims.pools import NotRun
from pipeline.analysis.claims.terms import NamedScore, Scores, Term
from pipeline.analysis.evidence import Evidence, Sample, Scale
from pipeline.analysis.floors import below_floor
from pipeline.analysis.names import ScoreName, SystemName
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import Product
from pipeline.core.schema import nearest
from pipeline.metrics import metric_named

RESAMPLED = "paired bootstrap over sentences"
"""How such claims are tested, in words."""


class AboutScores(Claim):
    """Compares terms under one or several scores."""

    @property
    @abstractmethod
    def score_names(self) -> list[str]:
        """Under `scores`."""

    @property
    @abstractmethod
    def compared(self) -> list[Term]: ...

    def check(self, scores: Scores) -> None:
        for name in self.score_names:
            if name not in scores:
                raise ValueError(f"no score {name!r}; there are {', '.join(scores)}{nearest(name, scores)}")

    def needs(self, view: PaperView, scores: Scores) -> Iterator[Product]:
        for score in (scores[name] for name in self.score_names):
            for term in self.compared:
                runs = view.runs(term.system, score.dataset)
                yield from view.scored(runs, score, term.decodings or [score.decoding])


class UnderOneScore(AboutScores):
    score: ScoreName = Field(description="Name under `scores`")

    @property
    def score_names(self) -> list[str]:
        return [self.score]

    def samples(self, measured: Measurements) -> list[Sample]:
        """Of the terms, in their order."""
        return [measured.sample(term, measured.scores[self.score]) for term in self.compared]

    def found(self, measured: Measurements, samples: Sequence[Sample], evidence: list[Evidence]) -> Findings:
        """evidence: from the terms' samples."""
        score = measured.scores[self.score]
        means = zip(self.compared, samples, strict=True)
        ours = ", ".join(f"{term.label} {one.mean:.2f}" for term, one in means)
        return Findings(ours, evidence, RESAMPLED, untrained(measured, score, self.compared, samples))


class OfMeans(UnderOneScore):
    """Is judged by differences between the terms' means."""

    def design(self, scores: Scores) -> tuple[str, str, list[str]] | None:
        systems = [term.system for term in self.compared]
        return scores[self.score].metric, scores[self.score].dataset, list(dict.fromkeys(systems))

    @abstractmethod
    def evidence(self, samples: Sequence[Sample], scale: Scale) -> list[Evidence]:
        """samples: of the terms, in their order, to be compared on a scale."""

    def judge(self, measured: Measurements) -> Findings:
        samples, metric = self.samples(measured), metric_named(measured.scores[self.score].metric)
        return self.found(measured, samples, self.evidence(samples, metric.judged_as))


class ScoredPair(UnderOneScore):
    """A system next to a baseline, each under the score's own decoding."""

    system: SystemName
    baseline: SystemName

    @property
    def compared(self) -> list[Term]:
        return [Term(system=self.system), Term(system=self.baseline)]

    def baselines(self, scores: Scores) -> list[tuple[str, str]]:
        return [(self.baseline, scores[self.score].dataset)]

    def favoured(self, scores: Scores) -> list[tuple[str, str]]:
        return [(self.system, scores[self.score].dataset)]


def untrained(measured: Measurements, score: NamedScore, terms: Sequence[Term], samples: Sequence[Sample]) -> str:
    """The systems whose score says that they have learnt too little, under their own decoding where it was scored."""
    found: dict[str, str] = {}
    for term, one in zip(terms, samples, strict=True):
        try:
            own = measured.mean_score(term.system, score) if term.decodings else one.mean
        except NotRun:
            continue
        if fault := below_floor(measured.view.experiment.floors, score.metric, own):
            found[term.system] = f"{term.system}: {fault}"
    return "; ".join(found.values())
