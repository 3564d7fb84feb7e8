"""Validation between training steps: perplexity on development and training data, and three sample outputs."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from pipeline.config import DecodingConfig
from pipeline.core.records.training import Loss
from pipeline.data.batches.corpus_batches import AnyBatch, AnySplit, AnyTrainingBatches, EvalBatches
from pipeline.data.batches.fixed_size_batches import TextOnlySplit
from pipeline.data.batches.parallel_batches import ParallelSplit, TextBatch
from pipeline.data.batches.speech_batches import SpeechBatch, SpeechSplit
from pipeline.data.text.vocabulary import vocabularies
from pipeline.models.seq2seq import FrameModel, Seq2Seq
from pipeline.search.beam_search import beam_search
from pipeline.training.distributed import Group
from pipeline.training.state import FIT_STEPS, perplexity

GREEDY = DecodingConfig(beam_size=1)


class Validation:
    """Measurements of a model on an encoded corpus; the subword model is next to the corpus folder.

    Args:
        corpus_folder: The encoded corpus.
        dev: Batches of its split `dev`.
        trained_on: Batches of the training; the first ones show how well its data are fitted.
        device: Where the model is.
        group: Processes that share the batches.
        precision: Returns the autocast of the training.
    """

    def __init__(
        self,
        corpus_folder: Path,
        dev: EvalBatches[AnySplit, AnyBatch],
        trained_on: AnyTrainingBatches,
        device: torch.device,
        group: Group,
        precision: Callable[[], AbstractContextManager],
    ):
        self.batches = dev
        self.src_symbols, self.tgt_symbols = vocabularies(corpus_folder)
        self.vocab_size = len(self.tgt_symbols)
        self.device, self.group, self.precision = device, group, precision
        self.keep_fit_batches(trained_on)

    def keep_fit_batches(self, trained_on: AnyTrainingBatches) -> None:
        """Keep batches of the first steps, because the loader's thread reads `trained_on` when they are measured."""
        steps, group = range(min(FIT_STEPS, len(trained_on))), self.group
        self.fit_batches = [batch for step in steps for batch in trained_on.micro_batches(step, group.rank, group.size)]

    def on_dev(self, model: Seq2Seq) -> Loss:
        """Measure the loss on the development set."""
        parts = islice(self.batches.parts(), self.group.rank, None, self.group.size)
        return self.measure(model, map(self.batches.pairs.batch, parts))

    def on_training_data(self, model: Seq2Seq) -> Loss:
        """Measure the loss on the data of the first steps, comparable with `on_dev`: without dropout.

        If a speech corpus is sorted in its first epoch, these are the shortest recordings.

        Returns:
            The mean over target tokens.
        """
        return self.measure(model, self.fit_batches)

    @torch.no_grad()
    def measure(self, model: Seq2Seq, batches: Iterable[AnyBatch]) -> Loss:
        """Return the mean loss over target tokens of the `batches` of all processes, given those of this one."""
        model.eval()
        nll = torch.zeros((), dtype=torch.float64, device=self.device)
        tokens = 0
        for batch in batches:
            with self.precision():
                sums = model.loss(batch.to(self.device), 0.0)
            nll += sums.nll
            tokens += sums.tokens
        model.train()
        nll_sum, token_sum = self.group.total([float(nll), tokens], self.device)
        mean = nll_sum / token_sum
        return Loss(nll_per_token=mean, perplexity=perplexity(mean), tokens=int(token_sum))

    def samples(self, model: Seq2Seq) -> list[dict[str, str]]:
        """Return `source`, `reference` and greedy `hypothesis` of three fixed sentences; none for a language model."""
        pairs = self.batches.pairs
        if isinstance(pairs, TextOnlySplit):
            return []
        chosen = np.unique([0, len(pairs.src) // 2, len(pairs.src) - 1])
        model.eval()
        with self.precision():
            outputs = self.decode(model, pairs.batch(chosen).to(self.device))
        model.train()
        texts = (
            self.sources(pairs, chosen),
            self.tgt_symbols.decode([pairs.tgt[i] for i in chosen]),
            self.tgt_symbols.decode(outputs),
        )
        return [
            {"source": source, "reference": reference, "hypothesis": hypothesis}
            for source, reference, hypothesis in zip(*texts, strict=True)
        ]

    def decode(self, model: Seq2Seq, batch: TextBatch | SpeechBatch) -> list[list[int]]:
        """Return the token ids of each output, decoded greedily or by the best path of CTC."""
        if isinstance(model, FrameModel):
            return model.best_path(batch)
        return [best.tokens for best, *_ in beam_search(model, batch, GREEDY)]

    def sources(self, pairs: ParallelSplit | SpeechSplit, chosen: np.ndarray) -> list[str]:
        """Return the source sentences `chosen` (sentences,), or for speech number and length of each utterance."""
        if self.src_symbols is None or isinstance(pairs, SpeechSplit):
            return [f"utterance {i}, {pairs.src_lengths[i]} frames" for i in chosen]
        return self.src_symbols.decode([pairs.src[i] for i in chosen])
