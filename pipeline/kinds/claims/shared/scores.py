"""Claims about scores that claims.yaml names."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
from pydantic import Field

from pipeline.kinds.claims.shared.claim import Claim, Scores
from pipeline.kinds.evidence import Sample
from pipeline.kinds.view import PaperView
from pipeline.products import Product, Trained
from pipeline.schema import Closed


class Term(Closed):
    """One side of a comparison."""

    system: str = Field(description="`name`, or `paper/name` of another paper")
    decodings: list[str] = Field(default=[], description="Decodings, averaged, instead of the score's own")

    @property
    def label(self) -> str:
        return f"{self.system} ({' '.join(self.decodings)})" if self.decodings else self.system


def as_term(term: str | Term) -> Term:
    return Term(system=term) if isinstance(term, str) else term


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
                raise ValueError(f"no score {name!r}; there are {', '.join(scores)}")

    def needs(self, view: PaperView, scores: Scores) -> Iterator[Product]:
        for score in (scores[name] for name in self.score_names):
            for term in self.compared:
                for run in view.runs(term.system, score.dataset):
                    yield Trained(run)
                    yield from view.scores(run, score, term.decodings or [score.decoding])


class UnderOneScore(AboutScores):
    score: str = Field(description="Name under `scores`")

    @property
    def score_names(self) -> list[str]:
        return [self.score]


class ScoredPair(UnderOneScore):
    """A system next to a baseline, each under the score's own decoding."""

    system: str
    baseline: str

    @property
    def compared(self) -> list[Term]:
        return [as_term(self.system), as_term(self.baseline)]


def of_all_splits(by_seed: Sequence[dict[str, np.ndarray]]) -> list[np.ndarray]:
    """Each seed's statistics (N, F), all splits as one set."""
    return [np.concatenate(list(rows.values())) for rows in by_seed]


def nothing_learned(samples: Sequence[Sample], metric: str) -> bool:
    """Systems that score nothing at all are equal, but that says nothing of what the paper compares."""
    if metric in ("cer", "wer"):
        return all((one.by_seed >= 100).all() for one in samples)
    return all(not one.by_seed.any() for one in samples)


def difference_name(larger: Term, smaller: Term) -> str:
    return f"{larger.label} less {smaller.label}"


def term_means(terms: Sequence[Term], samples: Sequence[Sample]) -> str:
    """Each term with its mean score."""
    return ", ".join(f"{term.label} {one.mean:.2f}" for term, one in zip(terms, samples, strict=True))
