"""Perplexity per symbol of one split: exp of the mean cross-entropy without smoothing; EOS counts, padding does not.

It is comparable only between systems of one vocabulary (Attention Is All You Need, Table 3: "per-wordpiece").
"""

from pathlib import Path

import numpy as np
import torch

from pipeline.core.errors import UserError
from pipeline.core.records.corpus import read_corpus
from pipeline.core.records.outputs import Scored
from pipeline.data.batches import corpus_batches
from pipeline.data.batches.fixed_size_batches import TextOnlySplit
from pipeline.data.dataset import CorpusRecord, SplitName, TreebankRecord, load_dataset
from pipeline.data.encoded_files import require_whole
from pipeline.data.text.checks import check_pairs
from pipeline.decoding.trained_model import TrainedModel
from pipeline.metrics import write_score
from pipeline.metrics.error_rates import LogLikelihoods

ONE_SENTENCE = 1
"""Source symbols of a batch, which still gets one sentence: a model returns the loss of a whole batch."""


def write_perplexity(
    *,
    weights: Path,
    dataset: Path,
    corpus: Path | None = None,
    split: SplitName = "dev",
    threads: int | None = None,
    out: Path,
) -> None:
    r"""Measure the perplexity of a split, without smoothing.

        python -m pipeline perplexity --dataset workflow/datasets/grammar-en-de.yaml --out dev.json \
            --weights work/demo/runs/attention/base/grammar-en-de/seed1-…/model.safetensors

    Write {dataset, split, test_set, lines, metrics: {perplexity: {value, low, high, signature}}, statistics,
    nll (nats), tokens, references, weights, training}. The .npz file beside it has nats and symbols of each sentence.

    Args:
        weights: Final or averaged weights in a run's folder.
        dataset: Dataset file that describes the split.
        corpus: Folder encoded/ of another corpus than the run was trained on.
        split: Split to measure.
        threads: CPU threads; by default all.
        out: JSON file to write.
    """
    measure_perplexity(TrainedModel.load(weights, threads), dataset, corpus, split, out)


def measure_perplexity(
    trained: TrainedModel, dataset_file: Path, elsewhere: Path | None, split: SplitName, out: Path
) -> None:
    """Write the perplexity of a split.

    Args:
        trained: The model.
        dataset_file: Dataset file that describes the split.
        elsewhere: Encoded corpus of the split; None for the training's own.
        split: Split to measure.
        out: JSON file to write; statistics go to the .npz file beside it.

    Raises:
        UserError: The corpus has another vocabulary, or the split is not what the dataset file describes.
    """
    dataset = load_dataset(dataset_file)
    own = Path(trained.spec.corpus)
    corpus = elsewhere or own
    record = read_corpus(corpus)
    if corpus != own and record.target_digest != trained.corpus.target_digest:
        raise UserError(f"{corpus}: has another vocabulary than the one that {trained.spec.name} was trained with")
    require_whole(corpus)
    pairs = corpus_batches.evaluation_split(trained.spec, corpus, split)
    corpus_batches.check_targets(trained.spec, pairs)
    if isinstance(dataset, CorpusRecord | TreebankRecord):
        check_pairs(dataset, split, len(pairs.tgt), str(corpus))
    statistics = cross_entropy(trained, pairs)
    nll, tokens = statistics.sum(axis=0).tolist()
    result = Scored(
        dataset=dataset.name,
        split=split,
        test_set=dataset.name_of_split(split),
        lines=len(pairs.tgt),
        nll=nll,
        tokens=int(tokens),
        references=record.digest,
        weights=trained.weights_digest,
        training=trained.training_digest,
    )
    unit = "subword" if record.kind == "parallel" else "character"
    write_score(out, LogLikelihoods(statistics, unit, record.vocab_sizes[1]), result)


@torch.inference_mode()
def cross_entropy(trained: TrainedModel, pairs: corpus_batches.AnySplit) -> np.ndarray:
    """Compute the cross-entropy of each sentence of a split, without smoothing or dropout.

    Args:
        trained: The model.
        pairs: The N sentences of the split.

    Returns:
        Nats and target symbols of each sentence, shape (N, 2).

    Raises:
        UserError: A side is longer than the model has positions for, or a loss is not finite.
    """
    if trained.model.max_positions is not None:
        sides = {"targets": pairs.tgt_lengths}
        if not isinstance(pairs, TextOnlySplit):
            sides = {"sources": pairs.src_lengths, **sides}
        for side, lengths in sides.items():
            trained.require_positions(f"{pairs.name}: {side}", lengths)
    rows = np.empty((len(pairs.tgt), 2))
    sentences = corpus_batches.EvalBatches[corpus_batches.AnySplit, corpus_batches.AnyBatch](pairs, ONE_SENTENCE)
    for (sentence,), batch in sentences:
        with trained.autocast():
            sums = trained.model.loss(batch.to(trained.device), 0.0)
        rows[sentence] = float(sums.nll), sums.tokens
    if not np.isfinite(rows).all():
        raise UserError(f"{pairs.name}: the loss is not finite because training diverged; train the run again")
    return rows
