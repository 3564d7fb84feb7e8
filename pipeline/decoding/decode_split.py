"""Decode a split: translations, parses and transcripts, one per line, and a report beside them."""

import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pipeline.config import DecodingConfig
from pipeline.core.command_line import Argument
from pipeline.core.errors import UserError, count_of
from pipeline.core.files import atomic_write
from pipeline.core.records.corpus import ParallelCorpus
from pipeline.core.records.outputs import Decoded, TunedWeights
from pipeline.core.schema import parse_json
from pipeline.data.batches.corpus_batches import EvalBatches, source_split
from pipeline.data.batches.parallel_batches import ParallelSplit, TextBatch
from pipeline.data.batches.speech_batches import SpeechBatch
from pipeline.data.encoded_files import require_whole
from pipeline.data.text.tokenisation import Tokenisation
from pipeline.data.text.vocabulary import load_vocabularies, vocabularies
from pipeline.decoding.trained_model import Decoder, TrainedModel, build_decoder, prepare_language_model
from pipeline.training.guards import out_of_memory_explained
from pipeline.training.machine import precision_on

log = logging.getLogger(__name__)
REPORT_EVERY_S = 5.0


def translate(
    *,
    weights: Path,
    split: str = "test",
    decoding: Annotated[str, Argument(metavar="JSON")] = "{}",
    language_model: Annotated[Path | None, Argument(metavar="FOLDER")] = None,
    text: Path | None = None,
    threads: int | None = None,
    out: Path,
) -> None:
    r"""Translate a split by beam search.

        python -m pipeline translate --split test --decoding '{"beam_size": 4, "length_penalty": 0.6}' \
            --weights work/demo/runs/weighted/A/grammar-en-de/seed1-…/model.safetensors \
            --out final/test.tok --text final/test.txt

    Write final/test.tok (tokenised, one line per sentence, in the order of the split), final/test.txt (the same
    detokenised) and final/test.json (weights, settings, speed). The run is the one whose folder holds the weights.

    Args:
        weights: Final or averaged weights in a run's folder.
        split: train, dev, test, test2, ….
        decoding: Settings that differ from the default.
        language_model: Run of the decoding's language model.
        text: File for the detokenised translation, if the target is a language.
        threads: CPU threads; by default all.
        out: File for the tokenised translation.
    """
    config, trained = parse_decoding(decoding), TrainedModel.load(weights, threads)
    replace_branch_weights(trained, config)
    external_lm = prepare_language_model(trained, config, language_model)
    decoder = build_decoder(trained.model, config, external_lm, trained.recorder())
    translate_split(trained, decoder, config, split, out, text, language_model)


def transcribe(
    *,
    weights: Path,
    corpus: Path,
    split: str = "test",
    decoding: Annotated[str, Argument(metavar="JSON")] = "{}",
    language_model: Annotated[Path | None, Argument(metavar="FOLDER")] = None,
    tuned: Path | None = None,
    threads: int | None = None,
    out: Path,
) -> None:
    r"""Transcribe the speech of a split.

        python -m pipeline transcribe --weights work/demo/runs/coldfusion/CF4/…/seed1-…/model.safetensors \
            --corpus work/corpora/grammar-speech-target/encoded --split test --decoding '{"beam_size": 8}' \
            --language-model work/demo/runs/coldfusion/lm-full/…/seed1-… --out transcripts/test.txt

    Write transcripts/test.txt, one line per utterance in the order of the split, and transcripts/test.json
    (weights, settings, speed). Features are normalised as in the training of the model's encoder.

    Args:
        weights: Final or averaged weights in a run's folder.
        corpus: Folder encoded/ of the speech, the run's own corpus or another one.
        split: train, dev, test, test2, ….
        decoding: Settings that differ from the default.
        language_model: Run of the decoding's language model.
        tuned: Weights of fusion that the stage `decode` chose.
        threads: CPU threads; by default all.
        out: File for the transcripts.
    """
    config = with_tuned_weights(parse_decoding(decoding), tuned)
    trained = TrainedModel.load(weights, threads)
    external_lm = prepare_language_model(trained, config, language_model)
    decoder = build_decoder(trained.model, config, external_lm, trained.recorder())
    transcribe_split(trained, decoder, config, corpus, split, out, language_model)


def parse_decoding(text: str) -> DecodingConfig:
    """Return the whole decoding of the option `--decoding`.

    Raises:
        UserError: `text` is not JSON or has an invalid setting.
    """
    return parse_json(DecodingConfig, text, "--decoding")


def replace_branch_weights(trained: TrainedModel, config: DecodingConfig) -> None:
    """Replace learned branch weights by equal or random ones (Weighted Transformer Network, Table 3).

    Raises:
        UserError: The model has no branches.
    """
    if config.branch_weights == "learned":
        return
    if not trained.model.parameter_groups()["branch_weights"]:
        raise UserError(
            f"--decoding: branch_weights: {config.branch_weights} is only for a Weighted Transformer; "
            f"{trained.spec.name} has no branches"
        )
    trained.model.replace_branch_weights(config.branch_weights, config.branch_weights_seed)


def with_tuned_weights(config: DecodingConfig, tuned: Path | None) -> DecodingConfig:
    """Return the decoding with `lm_weight` and `word_bonus` from the file `tuned`; None if it is not tuned.

    Raises:
        UserError: The decoding asks for tuned weights and none are given, or the reverse.
    """
    if config.tuned != (tuned is not None):
        raise UserError(
            "--tuned: required if the decoding has `lm_weights`, else refused; the stage `decode` writes the file"
        )
    if tuned is None:
        return config
    chosen = TunedWeights.read(tuned)
    return config.model_copy(update={"lm_weight": chosen.lm_weight, "word_bonus": chosen.word_bonus})


def translate_split(
    trained: TrainedModel,
    decoder: Decoder,
    config: DecodingConfig,
    split: str,
    out: Path,
    text: Path | None,
    language_model: Path | None,
) -> None:
    """Translate a split of the run's corpus.

    Args:
        trained: The model.
        decoder: Its search.
        config: Settings of the decoding; they go into the report.
        split: train, dev or test.
        out: File for the tokenised translation; the report is the .json file beside it.
        text: File for the detokenised translation; None to write none.
        language_model: Run of the search's language model, for the report.

    Raises:
        UserError: A source is longer than the model has positions for.
    """
    corpus = Path(trained.spec.corpus)
    _, subwords = load_vocabularies(corpus.parent)
    decoded = decode_split(trained, EvalBatches(ParallelSplit(corpus, split), config.batch_tokens), decoder)
    tokenised = subwords.decode(decoded.outputs)
    if text:
        record = trained.corpus
        tokenisation = Tokenisation(record.tokeniser) if isinstance(record, ParallelCorpus) else Tokenisation()
        write_lines(text, [tokenisation.text(line, record.tgt) for line in tokenised])
    write_outputs(out, tokenised, decoded.report(trained, split, config, language_model=language_model))


def transcribe_split(
    trained: TrainedModel,
    decoder: Decoder,
    config: DecodingConfig,
    corpus: Path,
    split: str,
    out: Path,
    language_model: Path | None,
) -> None:
    """Transcribe a split of an encoded corpus.

    Args:
        trained: The model.
        decoder: Its search.
        config: Settings of the decoding; they go into the report.
        corpus: Folder encoded/ of the speech.
        split: train, dev or test.
        out: File for the transcripts; the report is the .json file beside it.
        language_model: Run of the search's language model, for the report.

    Raises:
        UserError: The corpus is incomplete.
    """
    require_whole(corpus)
    pairs = source_split(trained.spec, corpus, split)
    decoded = decode_split(trained, EvalBatches(pairs, config.batch_tokens), decoder)
    lines = vocabularies(corpus)[1].decode(decoded.outputs)
    write_outputs(out, lines, decoded.report(trained, split, config, corpus, language_model))


@dataclass(frozen=True)
class DecodedSplit:
    """The decoded symbols of a split.

    Attributes:
        outputs: Symbols of each sequence, in the order of the split.
        seconds: Decoding time.
        cut: Outputs that fill all positions of the model; each may be cut short.
    """

    outputs: list[list[int]]
    seconds: float
    cut: int

    def report(
        self,
        trained: TrainedModel,
        split: str,
        config: DecodingConfig,
        corpus: Path | None = None,
        language_model: Path | None = None,
    ) -> Decoded:
        """Return the record beside the outputs.

        Args:
            trained: The model.
            split: The split.
            config: Settings of the decoding.
            corpus: Encoded corpus of the split; None for the run's own.
            language_model: Run of the search's language model.
        """
        return Decoded(
            split=split,
            lines=len(self.outputs),
            cut_at_last_position=self.cut,
            weights=trained.weights_digest,
            training=trained.training_digest,
            decoding=config.model_dump(),
            precision=precision_on(trained.device, trained.spec.training.precision),
            device=trained.device.type,
            seconds=round(self.seconds, 3),
            sentences_per_second=round(len(self.outputs) / self.seconds, 2),
            corpus=str(corpus) if corpus else None,
            language_model=str(language_model) if language_model else None,
        )


def decode_split(trained: TrainedModel, batches: EvalBatches[Any, Any], decoder: Decoder) -> DecodedSplit:
    """Return the best hypothesis of each sequence of a split, in order.

    Raises:
        UserError: A source is longer than the model has positions for, or memory ran out.
    """
    last = trained.model.max_positions
    if last is not None:
        trained.require_positions(f"{batches.pairs.name}: sources", batches.pairs.src_lengths)
    total = len(batches.pairs.tgt)
    outputs: list[list[int]] = [[]] * total
    finished, started, reported = 0, time.perf_counter(), time.perf_counter()
    for indices, batch in batches:
        explained = out_of_memory_explained(out_of_memory_in_search, trained, batch, batches.batch_positions)
        with explained, trained.autocast():
            hypotheses = decoder(batch.to(trained.device))
        for sentence, best in zip(indices.tolist(), hypotheses, strict=True):
            outputs[sentence] = best.tokens
        finished += len(hypotheses)
        if time.perf_counter() - reported > REPORT_EVERY_S:
            reported = time.perf_counter()
            log.info("%d/%d sentences, %.1f sentences/s", finished, total, finished / (reported - started))
    cut = 0 if last is None else sum(len(output) >= last - 1 for output in outputs)
    if cut:
        log.warning("%s at the last position of the model, of %d", count_of(cut, "output ends", "outputs end"), total)
    return DecodedSplit(outputs, time.perf_counter() - started, cut)


def out_of_memory_in_search(trained: TrainedModel, batch: TextBatch | SpeechBatch, positions: int) -> UserError:
    """Return the error that a search of a `batch` of at most `positions` source positions does not fit into memory."""
    rows, length = batch.src_shape
    remedy = f"set decoding.batch_tokens to {positions // 2} (now {positions})"
    if rows == 1:
        remedy = "lower decoding.beam_size, or decode on a device with more memory"
    found = f"{count_of(rows, 'sequence')} of up to {length} positions"
    return UserError(f"{trained.spec.name}: out of memory decoding {found}; {remedy}")


def write_outputs(path: Path, lines: list[str], report: Decoded) -> None:
    """Write one line per sequence, and the report beside them.

    Args:
        path: Text file to write; the report gets the suffix .json.
        lines: Outputs, without line feeds.
        report: Record of the decoding.

    Raises:
        UserError: A line holds a line feed.
    """
    write_lines(path, lines)
    report.write(path.with_suffix(".json"))
    # not the path, which is temporary if `reprise score` decodes
    log.info("%s: %s, %.1f sentences/s", report.split, count_of(report.lines, "line"), report.sentences_per_second)


def write_lines(path: Path, lines: list[str]) -> None:
    """Write one sentence per line.

    Args:
        path: Text file to write, replaced atomically.
        lines: Sentences, without line feeds.

    Raises:
        UserError: A sentence contains a line feed.
    """
    if any("\n" in line for line in lines):
        raise UserError(f"{path}: an output has a line feed, as the subword vocabulary has one; run `subwords` again")
    with atomic_write(path) as handle:
        handle.writelines(line + "\n" for line in lines)
