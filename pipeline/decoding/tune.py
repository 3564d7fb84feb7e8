"""Choice of the weights of shallow fusion on the development set (Cold Fusion, eq. 2)."""

import logging
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import fmean

import numpy as np

from pipeline.config import DecodingConfig
from pipeline.core.errors import UserError
from pipeline.core.records.outputs import TunedPoint, TunedWeights
from pipeline.data.batches.corpus_batches import source_split
from pipeline.data.batches.parallel_batches import TextBatch
from pipeline.data.batches.speech_batches import SpeechBatch
from pipeline.data.text.vocabulary import vocabularies
from pipeline.decoding.decode_split import out_of_memory_in_search
from pipeline.decoding.trained_model import TrainedModel, build_decoder, prepare_language_model
from pipeline.metrics.error_rates import CER, WER, Transcripts
from pipeline.training.guards import out_of_memory_explained

log = logging.getLogger(__name__)


def choose_weights(
    trained: TrainedModel,
    config: DecodingConfig,
    language_model: Path | None,
    out: Path,
    others: Sequence[Path],
) -> None:
    """Write the pair of fusion weights with the lowest word error rate, and the whole grid.

    Write {lm_weight, word_bonus, wer, sentences, grid: [{lm_weight, word_bonus, wer, cer}]}. The lowest word error rate
    decides; among equal ones the lowest character error rate, then the smaller weights. With files of other runs, the
    rates are means over runs, so that more speakers than those of one development set choose.

    Args:
        trained: The model.
        config: Decoding with the weights to try (`lm_weights`, `word_bonuses`).
        language_model: Run of the decoding's language model; None for n-grams of the model's own training data.
        out: JSON file to write.
        others: Files that this function wrote for other runs, with the same weights to try.

    Raises:
        UserError: A file of another run has other weights, or memory ran out.
    """
    batches, references = sample(trained, config)
    own = scored_grid(trained, config, language_model, batches, references)
    further = [tuned_run(path, own) for path in others]
    grid = mean_grid([own, *(run.grid for run in further)])
    best = min(grid, key=lambda point: (point.wer, point.cer, point.lm_weight, abs(point.word_bonus)))
    sentences = len(references) + sum(run.sentences for run in further)
    TunedWeights(**dict(best), sentences=sentences, grid=grid).write(out)
    log.info("%s: lambda %g, beta %g: WER %.2f", out, best.lm_weight, best.word_bonus, best.wer)


def tuned_run(path: Path, expected: list[TunedPoint]) -> TunedWeights:
    """Return the error rates of another run, by pair of weights.

    Raises:
        UserError: Its weights are others.
    """
    tuned = TunedWeights.read(path)
    weights = [[(point.lm_weight, point.word_bonus) for point in points] for points in (tuned.grid, expected)]
    if weights[0] != weights[1]:
        raise UserError(f"{path}: other weights were tried; give both runs the same lm_weights and word_bonuses")
    return tuned


def mean_grid(grids: list[list[TunedPoint]]) -> list[TunedPoint]:
    """Return the means of error rates over runs, by pair of weights."""
    return [
        points[0].model_copy(update={rate: fmean(getattr(point, rate) for point in points) for rate in ("wer", "cer")})
        for points in zip(*grids, strict=True)
    ]


def scored_grid(
    trained: TrainedModel,
    config: DecodingConfig,
    run_folder: Path | None,
    batches: list[TextBatch | SpeechBatch],
    references: list[str],
) -> list[TunedPoint]:
    """Measure the error rates of every pair of fusion weights on a sample.

    Args:
        trained: The model.
        config: Decoding with the weights to try.
        run_folder: Run of the decoding's language model; None for n-grams of the model's own training data.
        batches: Speech of the sample, on the model's device.
        references: Transcripts of the sample, in the order of the batches.

    Returns:
        One point for each pair, WER and CER in percent.

    Raises:
        UserError: Memory ran out.
    """
    language_model = prepare_language_model(trained, config, run_folder)
    symbols, points = vocabularies(Path(trained.spec.corpus))[1], []
    for weight, bonus in product(config.lm_weights, config.word_bonuses):
        weights = {"lm_weight": weight, "word_bonus": bonus}
        search = build_decoder(trained.model, config.model_copy(update=weights), language_model)
        outputs = []
        for batch in batches:
            explained = out_of_memory_explained(out_of_memory_in_search, trained, batch, config.batch_tokens)
            with explained, trained.autocast():
                outputs += [best.tokens for best in search(batch)]
        transcripts = Transcripts(references, symbols.decode(outputs))
        rates = {metric.name: float(metric.total(metric.statistics(transcripts).sum(axis=0))) for metric in (CER, WER)}
        points.append(TunedPoint(**weights, **rates))
        log.info("lambda %g, beta %g: WER %.2f, CER %.2f", weight, bonus, rates["wer"], rates["cer"])
    return points


def sample(trained: TrainedModel, config: DecodingConfig) -> tuple[list[TextBatch | SpeechBatch], list[str]]:
    """Return evenly spaced utterances of the dev set by length, in batches on the device, and transcripts."""
    corpus = Path(trained.spec.corpus)
    pairs = source_split(trained.spec, corpus, "dev")
    count = min(config.tuning_sentences, len(pairs.tgt))
    chosen = np.unique(np.linspace(0, len(pairs.tgt) - 1, count).round().astype(np.int64))
    chosen = chosen[np.argsort(pairs.src_lengths[chosen], kind="stable")]
    rows = max(1, config.batch_tokens // int(pairs.src_lengths[chosen].max()))
    parts = [chosen[begin : begin + rows] for begin in range(0, len(chosen), rows)]
    references = vocabularies(corpus)[1].decode([pairs.tgt[index] for index in chosen])
    return [pairs.batch(part).to(trained.device) for part in parts], references
