"""Stage `subwords`: vocabularies learnt from a seeded sample of the training pairs."""

import hashlib
import io
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece

from pipeline.core.errors import UserError, count_of
from pipeline.core.files import atomic_write
from pipeline.core.records.corpus import LearntVocabulary, Sampled, Vocabularies
from pipeline.data.dataset import BpeSubwords, SymbolVocabulary, TokenisedDataset, WordVocabulary, load_one_of
from pipeline.data.text.text_files import count_lines, lines_of
from pipeline.data.text.vocabulary import MODEL, TGT_MODEL, escape_reserved
from pipeline.models.settings import BOS, EOS, PAD, UNK

log = logging.getLogger(__name__)

TRAINER: dict[str, Any] = {
    "character_coverage": 1.0,
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
    "byte_fallback": False,
    "input_sentence_size": 0,
    "shuffle_input_sentence": False,
    "max_sentence_length": 1 << 20,  # bytes; sentencepiece silently skips longer lines, by default those above 4192
    "num_threads": 1,
    "pad_id": PAD,
    "unk_id": UNK,
    "bos_id": BOS,
    "eos_id": EOS,
    "unk_surface": " <unk> ",
    "minloglevel": 2,
}
"""Settings of all models: text is not changed, and every character is kept."""
LONGEST_LINE = (1 << 18) - 1
"""Number of four-byte characters that fit into `max_sentence_length`."""


def learn_vocabulary(*, dataset: Path, corpus: Path) -> None:
    """Learn the subword vocabulary of a dataset.

        python -m pipeline subwords --dataset workflow/datasets/multi30k-en-de.yaml --corpus work/corpora/multi30k-en-de

    reads   <corpus>/prepared/train.tok.<lang>
    writes  <corpus>/subwords.model       the sentencepiece model; of the source alone if the target has its own
            <corpus>/subwords.tgt.model   the model of the target, for a dataset with `tgt_subwords`
            <corpus>/subwords.json        digests, sizes, and the samples that they were learnt from

    Both sides share one byte-pair encoding, or each has a vocabulary: of subwords, of the most frequent words, or of
    all symbols. Text is not normalised, and every character of the sample is in the vocabulary. The sample is drawn
    here, so that the same corpus and seed give the same bytes.

    Args:
        dataset: Dataset file.
        corpus: Folder of the corpus.
    """
    learn_vocabularies(load_one_of(dataset, TokenisedDataset, "parallel text or a treebank"), corpus)


def learn_vocabularies(dataset: TokenisedDataset, corpus: Path) -> None:
    """Learn the vocabularies of a dataset and write them with their record.

    Raises:
        UserError: The prepared text is missing, or too small for the requested vocabulary.
    """
    files = [corpus / f"prepared/train.tok.{language}" for language in dataset.languages]
    tgt_model = corpus / TGT_MODEL
    tgt = None
    if dataset.tgt_subwords is None:
        tgt_model.unlink(missing_ok=True)
        src = learn_model(dataset.subwords, files, corpus / MODEL, f"{dataset.name}: subwords")
    else:
        src = learn_model(dataset.subwords, files[:1], corpus / MODEL, f"{dataset.name}: subwords")
        tgt = learn_model(dataset.tgt_subwords, files[1:], tgt_model, f"{dataset.name}: tgt_subwords")
    learnt = Vocabularies(**dict(src), tgt=tgt, sentencepiece=sentencepiece.__version__)
    learnt.write(corpus / "subwords.json")


def learn_model(
    settings: BpeSubwords | WordVocabulary | SymbolVocabulary, files: list[Path], path: Path, where: str
) -> LearntVocabulary:
    """Learn one model from the training text of one or both sides, and write it.

    Args:
        settings: Kind, size and sample of the vocabulary.
        files: Tokenised training text of each side that shares the model.
        path: File of the model.
        where: Dataset and setting, for messages.

    Returns:
        The record of the model, with its digest.
    """
    pairs = count_lines(files[0], "run the stage `prepare` first")
    sampled = Sampled(pairs=pairs, of=pairs)
    match settings:
        case BpeSubwords():
            chosen = sample(pairs, settings)
            model = train("bpe", sampled_lines(files, chosen), settings.vocab_size, f"{where}.vocab_size")
            warn_of_missing_characters(model, sampled_lines(files, chosen), where)
            sampled = Sampled(pairs=len(chosen), of=pairs, seed=settings.seed)
        case WordVocabulary():
            model = train("word", sampled_lines(files, np.arange(pairs)), settings.vocab_size, f"{where}.vocab_size")
        case SymbolVocabulary():
            model = train("word", sampled_lines(files, np.arange(pairs)), None, where)
    with atomic_write(path, "wb") as file:
        file.write(model)
    size = vocabulary_size(model)
    log.info("%s: %d entries from %d of %d pairs", where, size, sampled.pairs, pairs)
    digest = hashlib.sha256(model).hexdigest()
    return LearntVocabulary(kind=settings.kind, vocab_size=size, digest=digest, sample=sampled)


def sample(pairs: int, settings: BpeSubwords) -> np.ndarray:
    """Return the indices of sampled `pairs` in rising order, at most `sample_pairs` of the `settings`."""
    if pairs <= settings.sample_pairs:
        return np.arange(pairs)
    generator = np.random.Generator(np.random.PCG64(settings.seed))
    return np.sort(generator.choice(pairs, settings.sample_pairs, replace=False, shuffle=False))


def sampled_lines(files: list[Path], chosen: np.ndarray) -> Iterator[str]:
    """Yield the lines `chosen` by rising index (lines,) of every one of `files`, without line feeds."""
    for path in files:
        wanted = iter(chosen.tolist())
        following = next(wanted, None)
        for number, line in enumerate(lines_of(path, "run the stage `prepare` first")):
            if number == following:
                yield line
                following = next(wanted, None)


def train(kind: str, lines: Iterator[str], vocab_size: int | None, where: str) -> bytes:
    """Return a serialised sentencepiece model; words of equal frequency are ordered by code point.

    Args:
        kind: Model type of sentencepiece: bpe or word.
        lines: Training text.
        vocab_size: Exact number of entries; None makes an entry of every space-separated symbol.
        where: Dataset and setting, for messages.

    Raises:
        UserError: The text has too few distinct pieces or words, or more characters than entries.
    """
    size = {"use_all_vocab": True} if vocab_size is None else {"vocab_size": vocab_size}
    model, failed_reads = io.BytesIO(), list[UserError | OSError]()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=stop_at_read_error(split_for_sentencepiece(lines), failed_reads),
            model_writer=model,
            model_type=kind,
            **size,
            **TRAINER,
        )
    except RuntimeError as error:
        if not failed_reads:
            raise UserError(f"{where} = {vocab_size} does not fit this text: {error}") from error
    if failed_reads:
        raise failed_reads[0]
    if vocab_size is not None and (found := vocabulary_size(model.getvalue())) != vocab_size:
        raise UserError(
            f"{where} = {vocab_size}, but the text has only {found} distinct pieces; lower it to at most {found}"
        )
    return model.getvalue()


def split_for_sentencepiece(lines: Iterator[str]) -> Iterator[str]:
    """Yield lines that sentencepiece does not skip: short ones, without the symbols that it reserves."""
    for line in map(escape_reserved, lines):
        for begin in range(0, max(1, len(line)), LONGEST_LINE):
            yield line[begin : begin + LONGEST_LINE]


def warn_of_missing_characters(model: bytes, lines: Iterator[str], where: str) -> None:
    """Log the characters of the `lines` of the sample `where` that the serialised `model` lacks."""
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    known = {pieces.id_to_piece(number) for number in range(pieces.vocab_size())}
    characters = set[str]().union(*map(escape_reserved, lines))
    if missing := sorted(characters - known - {" "}):
        counted = count_of(len(missing), "character")
        log.warning("%s: the vocabulary lacks %s of the sample: %s", where, counted, ascii(missing))


def stop_at_read_error(lines: Iterator[str], failed_reads: list[UserError | OSError]) -> Iterator[str]:
    """Yield `lines` up to a read error, which sentencepiece would hide; it goes to `failed_reads`."""
    try:
        yield from lines
    except (UserError, OSError) as error:
        failed_reads.append(error)


def vocabulary_size(model: bytes) -> int:
    """Return the number of entries of a model."""
    return sentencepiece.SentencePieceProcessor(model_proto=model).vocab_size()
