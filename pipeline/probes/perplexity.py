"""Perplexity per symbol of one split: exp of the mean cross-entropy without smoothing, EOS counted, padding not.

    python -m pipeline perplexity --weights work/demo/runs/attention/base/grammar-en-de/seed1-…/model.safetensors \\
        --dataset workflow/datasets/grammar-en-de.yaml --split dev --out perplexities/final/dev.json

Writes perplexities/final/dev.json: {dataset, split, test_set, lines, metrics: {perplexity: {value, low, high,
signature}}, statistics, nll (nats), tokens, references, weights, training}, and dev.npz: nats and subwords of each
sentence, for intervals and paired tests. Comparable only between systems of one vocabulary (Attention Is All You Need,
Table 3: "per-wordpiece").
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from pipeline.core.errors import UserError
from pipeline.core.records.corpus import read_corpus
from pipeline.core.records.scores import Scored
from pipeline.data.batches.base import EvalBatches
from pipeline.data.batches.corpus_batches import (
    AnyBatch,
    AnySplit,
    check_targets,
    evaluation_split,
    input_kind,
    normalisation_corpus,
)
from pipeline.data.batches.fixed_size_batches import TextOnlySplit
from pipeline.data.dataset import CorpusRecord, SplitName, TreebankRecord, load_dataset
from pipeline.data.store.encoded_files import require_whole
from pipeline.data.text.checked_lines import check_pairs, name_of_split
from pipeline.decoding.trained_model import TrainedModel, model_arguments
from pipeline.metrics.perplexity import LogLikelihoods
from pipeline.metrics.score_file import write_score

ONE_SENTENCE = 1
"""Source symbols of a batch at most; it always has a sentence. Models sum over batches, and sentences are compared."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    model_arguments(parser, out="a .json file")
    parser.add_argument("--dataset", type=Path, required=True, help="dataset file: what the split has to be")
    parser.add_argument("--corpus", type=Path, help="folder encoded/ of another corpus than the run was trained on")
    parser.add_argument("--split", default="dev", help="train, dev or test")


def run(args: argparse.Namespace) -> None:
    trained = TrainedModel.load(args.weights, args.threads)
    measure_perplexity(trained, args.dataset, args.corpus, args.split, args.out)


def measure_perplexity(
    trained: TrainedModel, dataset_file: Path, elsewhere: Path | None, split: SplitName, out: Path
) -> None:
    """Write the perplexity of a split to `out`.

    Args:
        elsewhere: Encoded corpus of the split; None = that of the training.

    Raises:
        UserError: The corpus has another vocabulary, or the split is not what the dataset file describes.
    """
    dataset = load_dataset(dataset_file)
    own = Path(trained.spec.corpus)
    corpus = elsewhere or own
    record = read_corpus(corpus)
    if corpus != own and record.target_digest != trained.corpus.target_digest:
        raise UserError(f"{corpus}: has another vocabulary than {trained.spec.name} was trained with")
    require_whole(corpus)
    kind = input_kind(trained.spec)
    pairs = evaluation_split(corpus, split, normalisation_corpus(trained.spec), kind)
    check_targets(trained.spec, pairs)
    if isinstance(dataset, CorpusRecord | TreebankRecord):
        check_pairs(dataset, split, len(pairs.tgt), str(corpus))
    statistics = cross_entropy(trained, pairs)
    nll, tokens = statistics.sum(axis=0).tolist()
    result = Scored(
        dataset=dataset.name,
        split=split,
        test_set=name_of_split(dataset, split),
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
def cross_entropy(trained: TrainedModel, pairs: AnySplit) -> np.ndarray:
    """(N, 2): nats and target subwords of each sentence of a split, in its order, without smoothing or dropout.

    Raises:
        UserError: a side is longer than the model has positions for, or a loss is not a number.
    """
    if trained.model.max_positions is not None:
        sides = {"targets": pairs.tgt_lengths}
        if not isinstance(pairs, TextOnlySplit):
            sides = {"sources": pairs.src_lengths, **sides}
        for side, lengths in sides.items():
            trained.require_positions(f"{pairs.name}: {side}", lengths)
    rows = np.empty((len(pairs.tgt), 2))
    for (sentence,), batch in EvalBatches[AnySplit, AnyBatch](pairs, ONE_SENTENCE):
        with trained.autocast():
            sums = trained.model.loss(batch.to(trained.device), 0.0)
        rows[sentence] = float(sums.nll), sums.tokens
    if not np.isfinite(rows).all():
        raise UserError(f"{pairs.name}: the loss is not a number: training diverged; train the run again")
    return rows
