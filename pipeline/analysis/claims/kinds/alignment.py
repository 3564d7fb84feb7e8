from collections.abc import Iterator
from typing import Literal

from pipeline.analysis.claims.claim import Findings
from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.claims.terms import Scores
from pipeline.analysis.claims.trainings import TrainedPair, mean
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import Alignments, Product, RunId
from pipeline.core.records.probes import AlignmentMaps


class AlignmentClaim(TrainedPair):
    """The entropy of attention over speech, averaged over a training, is lower than another system's."""

    quantity = "entropy"
    kind: Literal["alignment"]
    split: Literal["dev", "test"] = "dev"

    def needs(self, view: PaperView, scores: Scores) -> Iterator[Product]:
        for trained in view.trained(self.systems, self.dataset):
            yield from (trained, Alignments(trained.run, self.split))

    def judge(self, measured: Measurements) -> Findings:
        def entropies(runs: list[RunId]) -> list[float]:
            files = [measured.path(Alignments(run, self.split)) for run in runs]
            return [mean(AlignmentMaps.read(path).entropy) for path in files]

        facts = self.dataset, self.quantity, entropies
        samples = [measured.trainings(one, *facts, of=self.split) for one in self.systems]
        evidence = self.lower("entropy of attention over the training (nats)", *samples)
        return Findings(f"{samples[0].mean:.2f} and {samples[1].mean:.2f} nats", [evidence], "entropies of trainings")
