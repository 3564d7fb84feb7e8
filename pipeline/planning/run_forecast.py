"""Forecast of a run: parameters, FLOPs, disk space, and time on this machine by the measurements of `calibrate`.

FLOPs are counted as the training counts them (`pipeline/training/specification.py`), from the mean step.
"""

import json
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipeline.config import RunSpec
from pipeline.core.errors import UserError
from pipeline.core.records.record import Record
from pipeline.core.schema import Closed
from pipeline.models.settings import BACKWARD, BatchShape
from pipeline.planning.corpus_size import Corpus, StepShape
from pipeline.training.checkpoint_files import RESUME_FILES
from pipeline.training.specification import run_flops
from pipeline.training.state import FIT_STEPS

BYTES = 4  # of a weight on disk
RESUMING = 3  # files of weights that a resume file is as large as: weights and two moments
LONGER = 1.2  # steps of a beam search per symbol of its output


@dataclass(frozen=True)
class RunForecast:
    """The forecast of a whole training.

    Attributes:
        vocab_sizes: Entries of the source and the target vocabulary.
        step: The mean training step.
    """

    spec: RunSpec
    vocab_sizes: tuple[int, int]
    step: StepShape
    step_flops: float
    validation_flops: float

    @cached_property
    def parameters(self) -> int:
        """Count the parameters of the model, which is built without memory."""
        from pipeline.models.seq2seq import count_parameters_on_meta  # loads torch, which FLOPs do not need
        from pipeline.training.run_model import build_run_model

        return count_parameters_on_meta(lambda: build_run_model(self.spec, self.vocab_sizes))

    @cached_property
    def shape(self) -> str:
        """Return the settings and sizes that speed depends on, as text; equal for all seeds of a system."""
        return shape_of(self.spec, self.vocab_sizes)

    @property
    def weight_bytes(self) -> int:
        """Return the disk space of the weights."""
        return self.parameters * BYTES

    @property
    def kept_bytes(self) -> int:
        """Return the disk space when the training is done, with the resume file for a longer one."""
        return (self._kept_files + RESUMING) * self.weight_bytes

    @property
    def peak_bytes(self) -> int:
        """Return the maximum disk space while it runs and writes another resume file."""
        return (self._kept_files + RESUMING * (RESUME_FILES + 1)) * self.weight_bytes

    @property
    def _kept_files(self) -> int:
        checkpoints = -(-self.steps // self.spec.training.checkpoint_every)
        return min(self.spec.training.keep_checkpoints, checkpoints) + 1

    @property
    def steps(self) -> int:
        """Return the number of steps."""
        return self.spec.training.max_steps

    @property
    def tokens(self) -> float:
        """Return the number of target subwords without padding."""
        return self.steps * self.step.tgt_tokens

    @property
    def training_flops(self) -> float:
        """Return the FLOPs of all steps, as `cost.json` counts them."""
        return self.steps * self.step_flops

    @property
    def flops(self) -> float:
        """Return the FLOPs of steps and validations."""
        return self.training_flops + self.validation_flops


def forecast_run(spec: RunSpec, corpus: Corpus) -> RunForecast:
    """Return the forecast of a whole training from its settings and the sizes of its corpus.

    Raises:
        UserError: No sequence of the corpus is short enough.
    """
    training = spec.training
    try:
        step = corpus.step_shape(training)
    except UserError as error:
        raise UserError(f"{spec.name} on {spec.dataset}: {error}") from error
    step_flops = flops_of(spec, corpus, step.src_positions, step.tgt_positions, step)
    validations = -(-training.max_steps // training.validate_every)
    validation_flops = FIT_STEPS * step_flops / (1 + BACKWARD)  # on training data
    validation_flops += forward_flops(spec, corpus, corpus.pairs["dev"], 1, 1.0)

    return RunForecast(
        spec=spec,
        vocab_sizes=(corpus.src_vocab, corpus.tgt_vocab),
        step=step,
        step_flops=step_flops,
        validation_flops=validations * validation_flops,
    )


def forward_flops(spec: RunSpec, corpus: Corpus, sentences: int, hypotheses: int, longer: float) -> float:
    """Return the FLOPs of encoding sentences and decoding `hypotheses` outputs of each.

    Args:
        spec: The run.
        corpus: Mean lengths and vocabulary.
        sentences: Number of sentences.
        hypotheses: Outputs of each sentence.
        longer: Length of the outputs, relative to the references.
    """
    src, tgt = corpus.src_subwords + 1, longer * (corpus.tgt_subwords + 1)
    lengths = StepShape(0, 0, 0, src, tgt)
    whole = flops_of(spec, corpus, sentences * src, sentences * hypotheses * tgt, lengths)
    return whole / (1 + BACKWARD)


def flops_of(spec: RunSpec, corpus: Corpus, src: float, tgt: float, lengths: StepShape) -> float:
    """Return the FLOPs of a training pass, forward and backward, over padded `src` and `tgt` positions."""
    return run_flops(spec, BatchShape(corpus.tgt_vocab, src, tgt, lengths.src_length, lengths.tgt_length))


PROBABILITIES = ("dropout", "attention_dropout", "relu_dropout")


class Point(Closed):
    """Measurements of one shape: FLOPs and seconds of a training step, and of decoding a batch by beam search."""

    shape: str
    family: str
    update_flops: float
    update_s: float
    decoding_flops: float
    decoding_s: float

    @property
    def training_rate(self) -> float:
        """Return the FLOP/s of training."""
        return self.update_flops / self.update_s

    @property
    def decoding_rate(self) -> float:
        """Return the FLOP/s of decoding."""
        return self.decoding_flops / self.decoding_s


def family_of(spec: RunSpec) -> str:
    """Return the family of a run, within which speed changes smoothly with size."""
    return spec.model.architecture + (" with fusion" if spec.fusion else "")


def shape_of(spec: RunSpec, vocab_sizes: tuple[int, int]) -> str:
    """Return the settings and sizes that speed depends on, as text. A dropout counts only as present or absent."""
    model = spec.model.model_dump()
    model |= {name: model[name] > 0 for name in PROBABILITIES if name in model}
    training = spec.training
    size = training.tokens_per_update or f"{training.sentences_per_update} sentences"
    sizes = [size, training.precision, *vocab_sizes]
    parts = [spec.fusion, spec.language_model.model] if spec.fusion and spec.language_model else []
    fused = [part.model_dump() for part in parts]
    return json.dumps([model, *sizes, *fused, training.trained_part], sort_keys=True)


class MeasuredSpeed(Record):
    """The measurements of `calibrate` on one device with some number of threads."""

    device: str
    threads: int
    points: tuple[Point, ...]

    def training_seconds(self, forecast: RunForecast) -> float:
        """Return the device seconds of a whole training."""
        return forecast.flops / self.rate("training", forecast)

    def decoding_seconds(self, forecast: RunForecast, flops: float) -> float:
        """Return the device seconds of a decoding."""
        return flops / self.rate("decoding", forecast)

    def rate(self, what: str, forecast: RunForecast) -> float:
        """Return the FLOP/s of training or decoding.

        A shape that was not measured is interpolated by FLOPs per step within its family, or within all shapes if its
        family was not measured.
        """
        if exact := [point for point in self.points if point.shape == forecast.shape]:
            return getattr(exact[0], f"{what}_rate")
        alike = [point for point in self.points if point.family == family_of(forecast.spec)] or self.points
        known = sorted((point.update_flops, getattr(point, f"{what}_rate")) for point in alike)
        flops, rates = np.log(np.array(known)).T
        return float(np.exp(np.interp(np.log(forecast.step_flops), flops, rates)))
