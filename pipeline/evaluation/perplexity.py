"""Perplexity per subword of one split: exp of the mean cross-entropy without smoothing, EOS counted, padding not.

    python -m pipeline perplexity --weights work/demo/runs/attention/base/grammar-en-de/seed1/model.safetensors \\
        --split dev --out nll.json

Writes nll.json: {split, nll, tokens, nll_per_token, perplexity, signature, weights}. Comparable only between systems of
one vocabulary (Attention Is All You Need, Table 3: "per-wordpiece").
"""

import argparse
import logging
import math
from pathlib import Path

import torch

from pipeline.data.batches import EvaluationBatches
from pipeline.decoding.trained_model import TrainedModel
from pipeline.files import write_json

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--weights", type=Path, required=True, help="final or averaged weights in a run's folder")
    parser.add_argument("--split", default="dev", help="train, dev or test")
    parser.add_argument("--batch-tokens", type=int, default=4096, help="source subwords at once")
    parser.add_argument("--threads", type=int, help="CPU threads; default: all")
    parser.add_argument("--out", type=Path, required=True, help="a .json file")


def run(args: argparse.Namespace) -> None:
    trained = TrainedModel.load(args.weights, args.threads)
    nll, tokens = cross_entropy(trained, EvaluationBatches(Path(trained.spec.corpus), args.split, args.batch_tokens))
    result = {
        "split": args.split,
        "nll": nll,
        "tokens": tokens,
        "nll_per_token": nll / tokens,
        "perplexity": math.exp(nll / tokens) if nll / tokens < 700 else math.inf,
        "signature": f"unit:subword|vocab:{trained.corpus['vocab_size']}|eos:yes|smoothing:none",
        "weights": trained.weights_digest,
    }
    write_json(args.out, result)
    log.info("%s: perplexity %.3f over %d subwords", args.split, result["perplexity"], tokens)


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
