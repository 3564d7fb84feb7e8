from typing import Annotated, Literal

from pydantic import Field

from pipeline.kinds.claims.shared.claim import Findings
from pipeline.kinds.claims.shared.measurements import Measurements, of_all_splits
from pipeline.kinds.claims.shared.scores import ScoredPair
from pipeline.kinds.evidence import Sample, difference
from pipeline.kinds.names import ScoreName


class LongSentencesClaim(ScoredPair):
    """On long sentences a system's advantage is at least as large as on all."""

    kind: Literal["long_sentences"]
    score: ScoreName = Field(description="Name under `scores`; the sentences of all its splits are scored as one set")
    longer_than: Annotated[int, Field(ge=1)] = Field(description="Source words")

    def judge(self, measured: Measurements) -> Findings:
        score = measured.scores[self.score]
        rows = [of_all_splits(measured.statistics_by_split(system, score)) for system in (self.system, self.baseline)]
        lengths = measured.lengths(self.system, score, score.splits)
        samples, long_samples = (
            [measured.score_of_part(one, lengths > shortest, score) for one in rows]
            for shortest in (0, self.longer_than)
        )
        if not any(one.by_seed.any() for one in long_samples):
            return Findings(f"no source of more than {self.longer_than} words, or nothing right", [], "")
        on_all, on_long = advantage(*samples), advantage(*long_samples)
        evidence = difference(f"advantage on more than {self.longer_than} words less that on all", on_long, on_all)
        ours = f"{on_all.mean:+.2f} on all, {on_long.mean:+.2f} on long sentences"
        return Findings(f"{self.system} less {self.baseline}: {ours}", [evidence], measured.sentence_test(score))


def advantage(system: Sample, baseline: Sample) -> Sample:
    return Sample(system.by_seed - baseline.by_seed, system.draws - baseline.draws, system.test_set)
