"""Time of FLOPs on this machine, from the measurements of `calibrate`."""

import json

import numpy as np

from pipeline.config import RunSpec
from pipeline.core.records.record import Record
from pipeline.core.schema import Closed
from pipeline.planning.corpus_size import Corpus
from pipeline.planning.run_forecast import RunForecast

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
    def update_rate(self) -> float:
        """Return the FLOP/s of training."""
        return self.update_flops / self.update_s

    @property
    def decoding_rate(self) -> float:
        """Return the FLOP/s of decoding."""
        return self.decoding_flops / self.decoding_s


def family_of(spec: RunSpec) -> str:
    """Return the family of a run, within which speed changes smoothly with size."""
    return spec.model.architecture + (" with fusion" if spec.fusion else "")


def shape_of(spec: RunSpec, corpus: Corpus) -> str:
    """Return the properties that speed depends on, as text; of dropout only whether there is any."""
    model = spec.model.model_dump()
    model |= {name: model[name] > 0 for name in PROBABILITIES if name in model}
    training = spec.training
    size = training.tokens_per_update or f"{training.sentences_per_update} sentences"
    sizes = [size, training.precision, corpus.src_vocab, corpus.tgt_vocab]
    parts = [spec.fusion, spec.language_model.model] if spec.fusion and spec.language_model else []
    fused = [part.model_dump() for part in parts]
    return json.dumps([model, *sizes, *fused, training.trained_part], sort_keys=True)


class Calibration(Record):
    """The measurements on `device` with `threads` threads."""

    device: str
    threads: int
    points: tuple[Point, ...]

    def training_seconds(self, forecast: RunForecast, corpus: Corpus) -> float:
        """Return the device seconds of a whole training."""
        return forecast.flops / self.rate("update", forecast.spec, corpus, forecast.update_flops)

    def decoding_seconds(self, forecast: RunForecast, corpus: Corpus, flops: float) -> float:
        """Return the device seconds of a decoding."""
        return flops / self.rate("decoding", forecast.spec, corpus, forecast.update_flops)

    def rate(self, what: str, spec: RunSpec, corpus: Corpus, update_flops: float) -> float:
        """Return FLOP/s for training (`update`) or decoding.

        A shape that was not measured is interpolated by FLOPs per step within its family, or within all shapes if its
        family was not measured.
        """
        shape = shape_of(spec, corpus)
        if exact := [point for point in self.points if point.shape == shape]:
            return getattr(exact[0], f"{what}_rate")
        alike = [point for point in self.points if point.family == family_of(spec)] or self.points
        known = sorted((point.update_flops, getattr(point, f"{what}_rate")) for point in alike)
        flops, rates = np.log(np.array(known)).T
        return float(np.exp(np.interp(np.log(update_flops), flops, rates)))
