from typing import Literal

from pydantic import Field

from pipeline.analysis.claims.claim import Findings
from pipeline.analysis.claims.measurements import Measurements, of_all_splits
from pipeline.analysis.claims.scores import RESAMPLED, ScoredPair, untrained
from pipeline.analysis.evidence import contrast
from pipeline.analysis.names import ScoreName
from pipeline.core.schema import Count
from pipeline.metrics import metric_named


class LongSentencesClaim(ScoredPair):
    """On long sentences a system's advantage is at least as large as on all; or it is better; or both do worse."""

    kind: Literal["long_sentences"]
    score: ScoreName = Field(description="Name under `scores`; the sentences of all its splits are scored as one set")
    longer_than: Count = Field(description="Source words")
    says: Literal["advantage is no smaller", "is better", "both do worse"] = Field(
        default="advantage is no smaller",
        description="Of the system beside its baseline, or of each beside all sentences",
    )

    def judge(self, measured: Measurements) -> Findings:
        score, systems = measured.scores[self.score], (self.system, self.baseline)
        rows = [of_all_splits(measured.statistics_by_split(system, score)) for system in systems]
        lengths, metric = measured.lengths(self.system, score, score.splits), metric_named(score.metric)
        samples, long_samples = (
            [
                measured.score_of_part(name, one, lengths > shortest, score)
                for name, one in zip(systems, rows, strict=True)
            ]
            for shortest in (0, self.longer_than)
        )
        if not any(one.by_seed.any() for one in long_samples):
            return Findings(f"no source of more than {self.longer_than} words, or nothing right", [], "")
        (system, baseline), (long_system, long_baseline) = samples, long_samples
        long, gain = f"on more than {self.longer_than} words", [(1, long_system), (-1, long_baseline)]
        match self.says:
            case "advantage is no smaller":
                found = {f"advantage {long} less that on all": [*gain, (-1, system), (1, baseline)]}
            case "is better":
                found = {f"advantage {long}": gain}
            case "both do worse":
                pairs = zip(systems, samples, long_samples, strict=True)
                found = {f"{name} on all less {long}": [(1, one), (-1, far)] for name, one, far in pairs}
        signed = {name: [(metric.sign * weight, one) for weight, one in terms] for name, terms in found.items()}
        evidence = [contrast(name, terms, scale=metric.judged_as) for name, terms in signed.items()]
        gains = system.mean - baseline.mean, long_system.mean - long_baseline.mean
        ours = f"{self.system} less {self.baseline}: {gains[0]:+.2f} on all, {gains[1]:+.2f} on long sentences"
        missing = untrained(measured, score, self.compared, samples)
        return Findings(ours, evidence, RESAMPLED, missing)
