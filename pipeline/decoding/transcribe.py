"""Write down what is said in one split of a corpus of speech, the run's own or another one.

    python -m pipeline transcribe --weights work/demo/runs/coldfusion/CF4/…/seed1-…/model.safetensors \\
        --corpus work/corpora/grammar-speech-target/encoded --split test --decoding '{"beam_size": 8}' \\
        --language-model work/demo/runs/coldfusion/lm-full/…/seed1-… --out transcripts/test.txt

Writes transcripts/test.txt, one line an utterance in the order of the split, and transcripts/test.json (weights,
settings, speed). `--tuned tuned.json` gives the weights that the stage `tune` chose. Features are normalised as those
of the training in which the model's encoder learnt were.
"""

import argparse
from pathlib import Path

from pipeline.config import DecodingConfig
from pipeline.core.errors import UserError
from pipeline.core.records.outputs import Tuned
from pipeline.data.batches.base import EvalBatches
from pipeline.data.batches.corpus_batches import normalisation_corpus, source_split
from pipeline.data.store.encoded_files import require_whole
from pipeline.data.text.vocabulary import vocabularies
from pipeline.decoding.choose_search import Decoder, build_decoder, prepare_language_model
from pipeline.decoding.decode_split import decode_split, parse_decoding, write_outputs
from pipeline.decoding.trained_model import TrainedModel, model_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    model_arguments(parser, out="transcripts")
    parser.add_argument("--corpus", type=Path, required=True, help="folder encoded/ of the speech to write down")
    parser.add_argument("--split", default="test", help="train, dev or test")
    parser.add_argument("--decoding", default="{}", metavar="JSON", help="settings that differ from the default")
    parser.add_argument("--language-model", type=Path, metavar="FOLDER", help="run of the decoding's language model")
    parser.add_argument("--tuned", type=Path, help="weights chosen by the stage `tune`")


def run(args: argparse.Namespace) -> None:
    config = with_tuned_weights(parse_decoding(args.decoding), args.tuned)
    trained = TrainedModel.load(args.weights, args.threads)
    language_model = prepare_language_model(trained, config, args.language_model)
    search = build_decoder(trained.model, config, language_model)
    transcribe_split(trained, search, config, args.corpus, args.split, args.out)


def transcribe_split(
    trained: TrainedModel, search: Decoder, config: DecodingConfig, corpus: Path, split: str, out: Path
) -> None:
    """Transcribe a split of an encoded corpus into `out`. Raises UserError when the corpus is incomplete."""
    require_whole(corpus)
    pairs = source_split(corpus, split, normalisation_corpus(trained.spec))
    decoded = decode_split(trained, EvalBatches(pairs, config.batch_tokens), search)
    lines = vocabularies(corpus)[1].decode(decoded.outputs)
    write_outputs(out, lines, decoded.report(trained, split, config, corpus))


def with_tuned_weights(config: DecodingConfig, tuned: Path | None) -> DecodingConfig:
    """Raises UserError when the decoding asks for weights that are not given, or the reverse."""
    if config.tuned != (tuned is not None):
        raise UserError("--tuned: goes with a decoding that has `lm_weights`, and only so; run the stage `tune` first")
    if tuned is None:
        return config
    chosen = Tuned.read(tuned)
    return config.model_copy(update={"lm_weight": chosen.lm_weight, "word_bonus": chosen.word_bonus})
