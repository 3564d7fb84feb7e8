"""Translate one split of a run's corpus.

    python -m pipeline translate --weights work/demo/runs/weighted/A/grammar-en-de/seed1/model.safetensors \\
        --split test --decoding '{"beam_size": 4, "length_penalty": 0.6}' --out final/test.tok --text final/test.txt

Writes final/test.tok (tokenised, one line a sentence, in the order of the split), final/test.txt (the same
detokenised) and final/test.json (weights, settings, speed). The run is found by the folder that the weights are in.
"""

import argparse
import json
import logging
import time
from pathlib import Path

from pipeline.config import DecodingConfig, validate
from pipeline.data.batches import EvaluationBatches
from pipeline.data.moses import detokenise
from pipeline.data.vocabulary import load_vocabularies
from pipeline.decoding.beam_search import beam_search
from pipeline.decoding.trained_model import TrainedModel
from pipeline.errors import UserError
from pipeline.files import atomic_write, write_json
from pipeline.models.weighted_transformer import WeightedTransformer

log = logging.getLogger(__name__)
REPORT_EVERY_S = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--weights", type=Path, required=True, help="final or averaged weights in a run's folder")
    parser.add_argument("--split", default="test", help="train, dev or test")
    parser.add_argument("--decoding", default="{}", metavar="JSON", help="settings that differ from the default")
    parser.add_argument("--threads", type=int, help="CPU threads; default: all")
    parser.add_argument("--out", type=Path, required=True, help="tokenised translation")
    parser.add_argument("--text", type=Path, help="detokenised translation, for a target side that is a language")


def run(args: argparse.Namespace) -> None:
    config = parse_decoding(args.decoding)
    trained = TrainedModel.load(args.weights, args.threads)
    replace_branch_weights(trained, config)
    corpus = Path(trained.spec.corpus)
    _, subwords = load_vocabularies(corpus.parent)
    started = time.perf_counter()
    outputs = translate(trained, EvaluationBatches(corpus, args.split, config.batch_tokens), config)
    seconds = time.perf_counter() - started
    tokenised = subwords.decode(outputs)
    write_lines(args.out, tokenised)
    if args.text:
        write_lines(args.text, [detokenise(line, trained.corpus["tgt"]) for line in tokenised])
    report = {
        "split": args.split,
        "lines": len(outputs),
        "weights": trained.weights_digest,
        "decoding": config.model_dump(),
        "precision": trained.spec.training.precision,
        "device": trained.device.type,
        "seconds": round(seconds, 3),
        "sentences_per_second": round(len(outputs) / seconds, 2),
    }
    write_json(args.out.with_suffix(".json"), report)
    log.info("%s: %d sentences, %.1f a second", args.out, len(outputs), len(outputs) / seconds)


def replace_branch_weights(trained: TrainedModel, config: DecodingConfig) -> None:
    """Weighted Transformer, Table 3. Raises UserError when the model has no branches to weigh."""
    if config.branch_weights == "learned":
        return
    if not isinstance(trained.model, WeightedTransformer):
        raise UserError(
            f"--decoding: branch_weights: {config.branch_weights}, but {trained.spec.name} is no Weighted Transformer"
        )
    trained.model.replace_branch_weights(config.branch_weights, config.branch_weights_seed)


def parse_decoding(text: str) -> DecodingConfig:
    """Raises UserError when `text` is not JSON or not a decoding setting."""
    try:
        return validate(DecodingConfig, json.loads(text), "--decoding")
    except json.JSONDecodeError as error:
        raise UserError(f"--decoding: not valid JSON ({error}): {text}") from error


def translate(trained: TrainedModel, batches: EvaluationBatches, config: DecodingConfig) -> list[list[int]]:
    """The best hypothesis of each sentence of a split, in the split's order.

    Raises:
        UserError: a sentence came out twice or not at all.
    """
    total = len(batches.pairs.src)
    outputs: list[list[int] | None] = [None] * total
    finished, started, reported = 0, time.monotonic(), time.monotonic()
    for indices, batch in batches:
        with trained.autocast():
            found = beam_search(trained.model, batch.to(trained.device), config)
        for sentence, (best, *_) in zip(indices.tolist(), found, strict=True):
            if outputs[sentence] is not None:
                raise UserError(f"{batches.pairs.name}: sentence {sentence} was decoded twice; run `encode` again")
            outputs[sentence] = best.tokens
        finished += len(found)
        if time.monotonic() - reported > REPORT_EVERY_S:
            reported = time.monotonic()
            log.info("%d/%d sentences, %.1f a second", finished, total, finished / (reported - started))
    if finished != total:
        raise UserError(f"{batches.pairs.name}: {finished} of {total} sentences were decoded; run `encode` again")
    return outputs


def write_lines(path: Path, lines: list[str]) -> None:
    """One line a sentence. Raises UserError when a sentence holds a line feed."""
    if any("\n" in line for line in lines):
        raise UserError(f"{path}: a translation holds a line feed; the subword model has one in its vocabulary")
    with atomic_write(path) as handle:
        handle.writelines(line + "\n" for line in lines)
