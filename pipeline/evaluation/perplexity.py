"""Perplexity per subword of one split: exp of the mean cross-entropy without smoothing, EOS counted, padding not.

    python -m pipeline perplexity --weights work/demo/runs/attention/base/grammar-en-de/seed1/model.safetensors \\
        --dataset workflow/datasets/grammar-en-de.yaml --split dev --out perplexities/final/dev.json

Writes perplexities/final/dev.json: {dataset, split, test_set, lines, metrics: {perplexity: {value, low, high (both
null), signature}}, nll (nats), tokens, weights}. Comparable only between systems of one vocabulary (Attention Is All
You Need, Table 3: "per-wordpiece").
"""

import argparse
import logging
from pathlib import Path

import torch

from pipeline.data.batches import EvaluationBatches
from pipeline.data.dataset import load_dataset
from pipeline.decoding.trained_model import TrainedModel
from pipeline.evaluation.test_sets import check_pairs, name_of_split
from pipeline.files import write_json
from pipeline.training.state import perplexity

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--weights", type=Path, required=True, help="final or averaged weights in a run's folder")
    parser.add_argument("--dataset", type=Path, required=True, help="dataset file: what the split has to be")
    parser.add_argument("--split", default="dev", help="train, dev or test")
    parser.add_argument("--batch-tokens", type=int, default=4096, help="source subwords at once")
    parser.add_argument("--threads", type=int, help="CPU threads; default: all")
    parser.add_argument("--out", type=Path, required=True, help="a .json file")


def run(args: argparse.Namespace) -> None:
    trained = TrainedModel.load(args.weights, args.threads)
    dataset = load_dataset(args.dataset)
    batches = EvaluationBatches(Path(trained.spec.corpus), args.split, args.batch_tokens)
    pairs = len(batches.pairs.src)
    check_pairs(dataset, args.split, pairs, trained.spec.corpus)
    nll, tokens = cross_entropy(trained, batches)
    signature = f"unit:subword|vocab:{trained.corpus['vocab_size']}|eos:yes|smoothing:none"
    metric = {"value": perplexity(nll / tokens), "low": None, "high": None, "signature": signature}
    result = {
        "dataset": dataset.name,
        "split": args.split,
        "test_set": name_of_split(dataset, args.split),
        "lines": pairs,
        "metrics": {"perplexity": metric},
        "nll": nll,
        "tokens": tokens,
        "weights": trained.weights_digest,
    }
    write_json(args.out, result)
    log.info("%s: perplexity %.3f over %d subwords", args.split, metric["value"], tokens)


@torch.inference_mode()
def cross_entropy(trained: TrainedModel, batches: EvaluationBatches) -> tuple[float, int]:
    """(sum in nats, target subwords) over a split, without smoothing or dropout."""
    nll, tokens = 0.0, 0
    for _, batch in batches:
        with trained.autocast():
            sums = trained.model.loss(batch.to(trained.device), 0.0)
        nll += float(sums.nll)
        tokens += sums.tokens
    return nll, tokens
