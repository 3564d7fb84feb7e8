"""Translate one split of a run's corpus.

    python -m pipeline translate --weights work/demo/runs/weighted/A/grammar-en-de/seed1-…/model.safetensors \\
        --split test --decoding '{"beam_size": 4, "length_penalty": 0.6}' --out final/test.tok --text final/test.txt

Writes final/test.tok (tokenised, one line a sentence, in the order of the split), final/test.txt (the same
detokenised) and final/test.json (weights, settings, speed). The run is found by the folder that the weights are in.
"""

import argparse
from pathlib import Path

from pipeline.config import DecodingConfig
from pipeline.core.errors import UserError
from pipeline.core.records.corpus import ParallelCorpus
from pipeline.data.batches.base import EvalBatches
from pipeline.data.batches.parallel_batches import ParallelSplit
from pipeline.data.text.tokenisation import Tokenisation
from pipeline.data.text.vocabulary import load_vocabularies
from pipeline.decoding.choose_search import Decoder, build_decoder, prepare_language_model
from pipeline.decoding.decode_split import decode_split, parse_decoding, write_lines, write_outputs
from pipeline.decoding.trained_model import TrainedModel, model_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    model_arguments(parser, out="tokenised translation")
    parser.add_argument("--split", default="test", help="train, dev or test")
    parser.add_argument("--decoding", default="{}", metavar="JSON", help="settings that differ from the default")
    parser.add_argument("--language-model", type=Path, metavar="FOLDER", help="run of the decoding's language model")
    parser.add_argument("--text", type=Path, help="detokenised translation, for a target side that is a language")


def run(args: argparse.Namespace) -> None:
    config = parse_decoding(args.decoding)
    trained = TrainedModel.load(args.weights, args.threads)
    replace_branch_weights(trained, config)
    language_model = prepare_language_model(trained, config, args.language_model)
    search = build_decoder(trained.model, config, language_model)
    translate_split(trained, search, config, args.split, args.out, args.text)


def translate_split(
    trained: TrainedModel, search: Decoder, config: DecodingConfig, split: str, out: Path, text: Path | None
) -> None:
    """Translate a split of the run's corpus into `out`, and detokenised into `text`.

    Raises:
        UserError: A source is longer than the model has positions for.
    """
    corpus = Path(trained.spec.corpus)
    _, subwords = load_vocabularies(corpus.parent)
    decoded = decode_split(trained, EvalBatches(ParallelSplit(corpus, split), config.batch_tokens), search)
    tokenised = subwords.decode(decoded.outputs)
    if text:
        known = trained.corpus
        how = Tokenisation(known.tokeniser) if isinstance(known, ParallelCorpus) else Tokenisation()
        write_lines(text, [how.text(line, known.tgt) for line in tokenised])
    write_outputs(out, tokenised, decoded.report(trained, split, config))


def replace_branch_weights(trained: TrainedModel, config: DecodingConfig) -> None:
    """Weighted Transformer, Table 3. Raises UserError when the model has no branches to weigh."""
    if config.branch_weights == "learned":
        return
    if not trained.model.parameter_groups()["branch_weights"]:
        raise UserError(
            f"--decoding: branch_weights: {config.branch_weights}, but {trained.spec.name} is no Weighted Transformer"
        )
    trained.model.replace_branch_weights(config.branch_weights, config.branch_weights_seed)
