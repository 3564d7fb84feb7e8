"""Claims about scores of the long sentences of a test set."""

from itertools import chain
from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from pipeline.analysis.claims.claim import RESAMPLED, Claim, Findings, of_two_systems
from pipeline.analysis.claims.measurements import Measurements, SplitsBySeed, concatenated
from pipeline.analysis.evidence import FEWEST_SENTENCES, Sample, contrast, smaller_factor
from pipeline.analysis.reference_types import ScoredSplit, ScoreName, SystemName
from pipeline.analysis.run_folders import NotRun
from pipeline.analysis.training_curves import System
from pipeline.analysis.view import Scores, Term
from pipeline.core.errors import count_of
from pipeline.core.schema import Count
from pipeline.metrics import metric_named


class ScoredPair(Claim):
    """A claim about a system and a baseline, each under the score's own decoding."""

    score: ScoreName
    system: SystemName
    baseline: SystemName

    compares_two_systems = model_validator(mode="after")(of_two_systems)

    @property
    def score_names(self) -> list[str]:
        return [self.score]

    @property
    def compared(self) -> list[Term]:
        return [Term(system=self.system), Term(system=self.baseline)]

    def baselines(self, scores: Scores) -> list[System]:
        return [(self.baseline, scores[self.score].dataset)]

    def expected_winner(self, scores: Scores) -> list[System]:
        return [(self.system, scores[self.score].dataset)]


class LongSentencesClaim(ScoredPair):
    """On long sentences, a system's advantage is no smaller than on all; or it is better; or both do worse."""

    kind: Literal["long_sentences"]
    score: ScoreName = Field(description="Name under `scores`; the sentences of all its splits are scored as one set")
    longer_than: Count = Field(description="A long sentence has more source words than this")
    says: Literal["advantage is no smaller", "is better", "both do worse"] = Field(
        default="advantage is no smaller",
        description="Statement about the long sentences: the system's advantage over its baseline is no smaller than "
        "on all sentences; the system is better; or both score worse than on all sentences",
    )

    def evaluate(self, measured: Measurements) -> Findings:
        """Score the long sentences and all sentences by a paired bootstrap, and compare the quantities of the claim."""
        score, systems = measured.scores[self.score], (self.system, self.baseline)
        rows = [concatenated(measured.statistics_by_split(system, score)) for system in systems]
        lengths, metric = measured.source_lengths(self.system, score, score.splits), metric_named(score.metric)
        if (count := int((lengths > self.longer_than).sum())) < FEWEST_SENTENCES:
            found = f"{count_of(count, 'source')} of more than {self.longer_than} words; {FEWEST_SENTENCES} are needed"
            return Findings(found, [], "")
        samples, long_samples = (
            [
                measured.score_of_part(name, statistics, lengths > shortest, score)
                for name, statistics in zip(systems, rows, strict=True)
            ]
            for shortest in (0, self.longer_than)
        )
        if not any(sample.by_seed.any() for sample in long_samples):
            return Findings(f"nothing right on more than {self.longer_than} words", [], "")
        evidence = [
            contrast(name, [(metric.sign * weight, sample) for weight, sample in terms], scale=metric.comparison_scale)
            for name, terms in self.quantities(samples, long_samples).items()
        ]
        gains = [first.mean - other.mean for first, other in (samples, long_samples)]
        ours = f"{self.system} − {self.baseline}: {gains[0]:+.2f} on all, {gains[1]:+.2f} on long sentences"
        return Findings(ours, evidence, RESAMPLED, self.below_floor(measured, samples, long_samples))

    def below_floor(self, measured: Measurements, samples: list[Sample], long_samples: list[Sample]) -> str:
        """Name the systems below the floor; on the long sentences only if an advantage on them is claimed."""
        score = measured.scores[self.score]
        fault = measured.below_score_floor(score, self.compared, samples)
        if fault or self.says == "both do worse":
            return fault
        fault = measured.below_score_floor(score, self.compared, long_samples)
        return f"on more than {self.longer_than} words, {fault}" if fault else ""

    def quantities(self, samples: list[Sample], long_samples: list[Sample]) -> dict[str, list[tuple[int, Sample]]]:
        """Return pairs of weight and sample, by the name of a sum that is positive if the claim is true.

        The `samples` are scores on all sentences, of system and baseline, and `long_samples` those on the long ones.
        """
        (system, baseline), (long_system, long_baseline) = samples, long_samples
        long, gain = f"on more than {self.longer_than} words", [(1, long_system), (-1, long_baseline)]
        match self.says:
            case "advantage is no smaller":
                return {f"advantage {long} − that on all": [*gain, (-1, system), (1, baseline)]}
            case "is better":
                return {f"advantage {long}": gain}
            case "both do worse":
                pairs = zip((self.system, self.baseline), samples, long_samples, strict=True)
                return {f"{name} on all − {long}": [(1, near), (-1, far)] for name, near, far in pairs}


class BeyondTrainingClaim(ScoredPair):
    """On sentences longer than any in training, a system's perplexity grows by a smaller factor than another's."""

    kind: Literal["beyond_training"]
    score: ScoreName = Field(description="Name under `scores`: a perplexity of several splits")
    longer: ScoredSplit = Field(description="Split of the score that has the longer sentences")

    def check(self, scores: Scores) -> None:
        """Check that the score is a perplexity of several splits, one of them the longer one.

        Raises:
            ValueError: A score is unknown or does not fit.
        """
        super().check(scores)
        score = scores[self.score]
        if score.metric != "perplexity" or self.longer not in score.splits or len(score.splits) < 2:
            raise ValueError(f"needs a perplexity of {self.longer} and of other splits")

    def evaluate(self, measured: Measurements) -> Findings:
        """Return the logarithm of the ratio of the factors by which both perplexities grow.

        Raises:
            NotRun: Sentences are no longer than one that a system was trained on; the message counts them.
        """
        score, systems = measured.scores[self.score], (self.system, self.baseline)
        rows = [measured.statistics_by_split(system, score) for system in systems]
        longest = max(measured.longest_trained_on(system, score) for system in systems)
        lengths = measured.source_lengths(self.system, score, [self.longer])
        if not (lengths > longest).all():
            found = f"{(lengths <= longest).sum()} of {len(lengths)} sentences of {self.longer}"
            raise NotRun(f"{found} are no longer than the longest trained on ({longest} subwords)")
        samples = self.within_and_beyond(rows, measured)
        factors = ", ".join(
            f"{name} {within.mean:.2f} to {beyond.mean:.2f} (x {beyond.mean / within.mean:.2f})"
            for name, (within, beyond) in zip(systems, samples, strict=True)
        )
        ours = f"{factors} on {len(lengths)} sentences of {lengths.min()} to {lengths.max()} subwords"
        missing = measured.below_score_floor(score, self.compared, [within for within, _ in samples])
        evidence = [smaller_factor(*chain(*samples))]
        return Findings(f"{ours}, trained on at most {longest}", evidence, RESAMPLED, missing)

    def within_and_beyond(self, rows: list[SplitsBySeed], measured: Measurements) -> list[tuple[Sample, Sample]]:
        """Return each system's perplexity of the other splits, and of the one with the longer sentences."""
        score, part = measured.scores[self.score], measured.score_of_part
        longer = np.concatenate(
            [np.full(len(statistics), split == self.longer) for split, statistics in rows[0][0].items()]
        )
        whole = zip((self.system, self.baseline), map(concatenated, rows), strict=True)
        return [
            (part(name, statistics, ~longer, score), part(name, statistics, longer, score))
            for name, statistics in whole
        ]
