"""Forecast of a run: parameters, steps, tokens, FLOPs of training and decoding, and disk space.

FLOPs are counted as the training counts them (`pipeline/training/specification.py`), from the mean step.
"""

from dataclasses import dataclass

from pipeline.config import DecodingConfig, RunSpec
from pipeline.models.build import size_of
from pipeline.models.flops import BACKWARD, BatchShape
from pipeline.planning.corpus_size import Corpus, StepShape
from pipeline.training.checkpoint import RESUME_FILES
from pipeline.training.run_model import build_run_model
from pipeline.training.specification import run_flops
from pipeline.training.validation import FIT_STEPS

BYTES = 4  # a weight on disk
LONGER = 1.2  # steps of a beam search over the length of what it returns


@dataclass(frozen=True)
class RunForecast:
    """The forecast of a whole training.

    Attributes:
        spec: The run.
        parameters: Number of parameters.
        update: The mean training step.
        update_flops: FLOPs of a step.
        validation_flops: FLOPs of all validations.
        kept_bytes: Disk space when it is done.
        peak_bytes: Most disk space while it runs.
    """

    spec: RunSpec
    parameters: int
    update: StepShape
    update_flops: float
    validation_flops: float
    kept_bytes: int
    peak_bytes: int

    @property
    def steps(self) -> int:
        """Return the number of steps."""
        return self.spec.training.max_steps

    @property
    def tokens(self) -> float:
        """Return the number of target subwords without padding."""
        return self.steps * self.update.tgt_tokens

    @property
    def training_flops(self) -> float:
        """Return the FLOPs of all steps, as `cost.json` counts them."""
        return self.steps * self.update_flops

    @property
    def flops(self) -> float:
        """Return the FLOPs of steps and validations."""
        return self.training_flops + self.validation_flops


def forecast_run(spec: RunSpec, corpus: Corpus) -> RunForecast:
    """Forecast a training."""
    training = spec.training
    parameters = size_of(lambda: build_run_model(spec, (corpus.src_vocab, corpus.tgt_vocab)))
    update = corpus.update_shape(training)
    update_flops = flops_of(spec, corpus, update.src_positions, update.tgt_positions, update)
    validations = -(-training.max_steps // training.validate_every)
    validation_flops = FIT_STEPS * update_flops / (1 + BACKWARD)  # and the development set
    validation_flops += forward_flops(spec, corpus, corpus.pairs["dev"], 1, 1.0)
    weights = parameters * BYTES
    checkpoints = -(-training.max_steps // training.checkpoint_every)
    kept = min(training.keep_checkpoints, checkpoints) + 1
    return RunForecast(
        spec=spec,
        parameters=parameters,
        update=update,
        update_flops=update_flops,
        validation_flops=validations * validation_flops,
        kept_bytes=kept * weights,
        peak_bytes=(kept + 3 * (RESUME_FILES + 1)) * weights,
    )


def decoding_flops(spec: RunSpec, corpus: Corpus, sentences: int, decoding: DecodingConfig) -> float:
    """Return the FLOPs of translating sentences by beam search."""
    return forward_flops(spec, corpus, sentences, decoding.beam_size, LONGER)


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
    """Return the FLOPs of a training pass over so many source and target positions."""
    return run_flops(spec, BatchShape(corpus.tgt_vocab, src, tgt, lengths.src_length, lengths.tgt_length))
