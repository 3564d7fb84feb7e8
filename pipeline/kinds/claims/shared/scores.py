"""Claims about scores that claims.yaml names."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence

from pydantic import Field

from pipeline.kinds.claims.shared.claim import Claim, Findings
from pipeline.kinds.claims.shared.measurements import Measurements
from pipeline.kinds.claims.shared.terms import Scores, Term
from pipeline.kinds.evidence import Evidence, Sample
from pipeline.kinds.names import ScoreName, SystemName
from pipeline.kinds.view import PaperView
from pipeline.metrics import metric_named
from pipeline.products import Product
from pipeline.schema import nearest


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


class OfMeans(UnderOneScore):
    """Is judged by differences between the terms' means."""

    @abstractmethod
    def evidence(self, samples: Sequence[Sample]) -> list[Evidence]:
        """samples: of the terms, in their order."""

    def judge(self, measured: Measurements) -> Findings:
        score = measured.scores[self.score]
        samples = [measured.sample(term, score) for term in self.compared]
        ours, test = term_means(self.compared, samples), measured.sentence_test(score)
        if nothing_learned(samples, score.metric):
            return Findings(f"{ours}: nothing was learned", [], test)
        return Findings(ours, self.evidence(samples), test)


class ScoredPair(UnderOneScore):
    """A system next to a baseline, each under the score's own decoding."""

    system: SystemName
    baseline: SystemName

    @property
    def compared(self) -> list[Term]:
        return [Term(system=self.system), Term(system=self.baseline)]


def nothing_learned(samples: Sequence[Sample], metric: str) -> bool:
    """Systems that score nothing at all are equal, but that says nothing of what the paper compares."""
    return all(metric_named(metric).nothing_learned(one.by_seed) for one in samples)


def term_means(terms: Sequence[Term], samples: Sequence[Sample]) -> str:
    """Each term with its mean score."""
    return ", ".join(f"{term.label} {one.mean:.2f}" for term, one in zip(terms, samples, strict=True))
