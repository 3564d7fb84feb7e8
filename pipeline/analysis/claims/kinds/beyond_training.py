from itertools import chain
from typing import Literal

import numpy as np
from pydantic import Field

from pipeline.analysis.claims.claim import Findings
from pipeline.analysis.claims.measurements import Measurements, NotRun, SplitsBySeed, of_all_splits
from pipeline.analysis.claims.scores import RESAMPLED, ScoredPair, untrained
from pipeline.analysis.claims.terms import Scores
from pipeline.analysis.evidence import Sample, smaller_factor
from pipeline.analysis.names import ScoreName
from pipeline.analysis.scored import ScoredSplit


class BeyondTrainingClaim(ScoredPair):
    """On sentences longer than any in training, a system's perplexity grows by a smaller factor than another's."""

    kind: Literal["beyond_training"]
    score: ScoreName = Field(description="Name under `scores`: a perplexity of several splits")
    longer: ScoredSplit = Field(description="The one of its splits that has the longer sentences")

    def check(self, scores: Scores) -> None:
        super().check(scores)
        score = scores[self.score]
        if score.metric != "perplexity" or self.longer not in score.splits or len(score.splits) < 2:
            raise ValueError(f"needs a perplexity of {self.longer} and of other splits")

    def judge(self, measured: Measurements) -> Findings:
        """Raises NotRun, counting them, when sentences are no longer than one that a system was trained on."""
        score, systems = measured.scores[self.score], (self.system, self.baseline)
        rows = [measured.statistics_by_split(system, score) for system in systems]
        longest = max(measured.longest_trained_on(system, score) for system in systems)
        lengths = measured.lengths(self.system, score, [self.longer])
        if not (lengths > longest).all():
            found = f"{(lengths <= longest).sum()} of {len(lengths)} sentences of {self.longer}"
            raise NotRun(f"{found} have no more than the {longest} subwords of the longest trained on")
        samples = self.within_and_beyond(rows, measured)
        factors = ", ".join(
            f"{name} {within.mean:.2f} to {beyond.mean:.2f} (x {beyond.mean / within.mean:.2f})"
            for name, (within, beyond) in zip(systems, samples, strict=True)
        )
        ours = f"{factors} on {len(lengths)} sentences of {lengths.min()} to {lengths.max()} subwords"
        missing = untrained(measured, score, self.compared, [within for within, _ in samples])
        evidence = [smaller_factor(*chain(*samples))]
        return Findings(f"{ours}, trained on at most {longest}", evidence, RESAMPLED, missing)

    def within_and_beyond(self, rows: list[SplitsBySeed], measured: Measurements) -> list[tuple[Sample, Sample]]:
        """Each system's perplexity of the other splits, and of that with the longer sentences."""
        score, part = measured.scores[self.score], measured.score_of_part
        longer = np.concatenate([np.full(len(one), split == self.longer) for split, one in rows[0][0].items()])
        whole = zip((self.system, self.baseline), map(of_all_splits, rows), strict=True)
        return [(part(name, one, ~longer, score), part(name, one, longer, score)) for name, one in whole]
