from collections.abc import Iterator
from typing import Literal

from pipeline.kinds.claims.shared.claim import Findings
from pipeline.kinds.claims.shared.measurements import Measurements
from pipeline.kinds.claims.shared.terms import Scores
from pipeline.kinds.claims.shared.trainings import TrainedPair, mean
from pipeline.kinds.view import PaperView
from pipeline.products import Alignments, Product
from pipeline.records.probes import AlignmentMaps


class AlignmentClaim(TrainedPair):
    """The entropy of attention over speech, averaged over a training, is lower than another system's."""

    kind: Literal["alignment"]
    split: Literal["dev", "test"] = "dev"

    def needs(self, view: PaperView, scores: Scores) -> Iterator[Product]:
        for trained in view.trained(self.systems, self.dataset):
            yield from (trained, Alignments(trained.run, self.split))

    def judge(self, measured: Measurements) -> Findings:
        gaps, ours = [], []
        for pair in self.runs(measured):
            files = [measured.path(Alignments(run, self.split)) for run in pair]
            entropy, baseline = (mean(AlignmentMaps.read(path).entropy) for path in files)
            gaps.append(baseline - entropy)
            ours.append(f"{entropy:.2f} and {baseline:.2f} nats")
        name = f"{self.baseline} less {self.system}, entropy of attention over the training (nats)"
        return self.by_gaps(measured, name, gaps, "; ".join(ours))
