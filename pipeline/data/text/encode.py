"""Stage `encode`: tokenised text as memory-mapped ids."""

import logging
from collections import Counter
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path

import numpy as np

from pipeline.core.digests import sha256_file
from pipeline.core.disk import require_space
from pipeline.core.errors import UserError
from pipeline.core.records.corpus import ParallelCorpus, ParallelSizes
from pipeline.data.dataset import CorpusRecord, TokenisedDataset, TokenisedRecord, load_one_of
from pipeline.data.encoded_files import encoded_stores, stores_digest
from pipeline.data.processes import ProgressLog, chunks, map_in_order
from pipeline.data.sequence_store import token_type, write_tokens
from pipeline.data.text.text_files import lines_of
from pipeline.data.text.vocabulary import MODEL, TGT_MODEL, Subwords
from pipeline.models.settings import UNK

log = logging.getLogger(__name__)

LINES_PER_CHUNK = 5000
COUNTED = ("tokens", "unknown", "changed")
WRITTEN_OVER_READ = 0.8
"""Bytes written for each byte read: 2 for each subword of about 3 bytes, and 8 for each sentence."""


@dataclass
class EncodedChunk:
    """Ids of some lines in a row, (tokens,), their number in each line, (lines,), and losses."""

    flat: np.ndarray
    lengths: np.ndarray
    unknown: int
    changed: int


def encode_corpus(*, dataset: Path, corpus: Path, processes: int = 1) -> None:
    """Encode tokenised text as memory-mapped ids.

        python -m pipeline encode --dataset workflow/datasets/multi30k-en-de.yaml --corpus work/corpora/multi30k-en-de

    reads   <corpus>/prepared/<split>.tok.<lang>, <corpus>/subwords.model, subwords.tgt.model
    writes  <corpus>/encoded/<split>.{src,tgt}.{tokens,offsets}   see sequence_store.py
            <corpus>/encoded/corpus.json                          sizes and digests, written last

    Every line is decoded again. The record counts lines that differ after decoding (`*_changed`) and unknown subwords
    (`*_unknown`).

    Args:
        dataset: Dataset file.
        corpus: Folder of the corpus.
        processes: Number of processes that share the work.
    """
    encode(load_one_of(dataset, TokenisedRecord, "parallel text or a treebank"), corpus, processes)


def encode(dataset: TokenisedDataset, corpus: Path, processes: int) -> ParallelCorpus:
    """Return the record in `encoded/corpus.json`, after writing `encoded/`; see `encode_corpus`.

    Raises:
        UserError: Prepared text or the subword model is missing, or the sides of a split differ in length.
    """
    src_model, tgt_model = corpus / MODEL, corpus / (TGT_MODEL if dataset.tgt_subwords else MODEL)
    src_size, tgt_size = len(Subwords(src_model)), len(Subwords(tgt_model))
    texts = {
        split: [corpus / f"prepared/{split}.tok.{side}" for side in dataset.languages] for split in dataset.split_names
    }
    read = sum(path.stat().st_size for path in chain(*texts.values()) if path.exists())
    require_space(corpus, WRITTEN_OVER_READ * read, "the encoded corpus")
    splits: dict[str, ParallelSizes] = {}
    for split in dataset.split_names:
        src_text, tgt_text = texts[split]
        src = encode_side(src_text, src_model, corpus / f"encoded/{split}.src", src_size, processes)
        tgt = encode_side(tgt_text, tgt_model, corpus / f"encoded/{split}.tgt", tgt_size, processes)
        splits[split] = split_record(src, tgt, f"{corpus}/prepared: split {split}")
    record = ParallelCorpus(
        dataset=dataset.name,
        src=dataset.src,
        tgt=dataset.tgt,
        tokeniser=dataset.tokeniser if isinstance(dataset, CorpusRecord) else "moses",
        vocab_size=src_size,
        vocab_digest=sha256_file(src_model),
        tgt_vocab_size=tgt_size,
        tgt_vocab_digest=sha256_file(tgt_model),
        digest=stores_digest(encoded_stores(corpus / "encoded", "parallel", splits)),
        splits=splits,
    )
    record.write(corpus / "encoded/corpus.json")
    return record


def encode_side(text: Path, model: Path, stem: Path, vocab_size: int, processes: int) -> Counter[str]:
    """Encode one side of a split.

    Args:
        text: Tokenised text.
        model: Subword model of the side.
        stem: Path of the token store without its suffixes.
        vocab_size: Entries of the model, which decide the bytes of an id.
        processes: Number of processes that share the work.

    Returns:
        Numbers of lines, tokens, unknown subwords, and lines that a round trip changes.
    """
    counts: Counter[str] = Counter()
    progress = ProgressLog(log, f"{text.name}: encoded", "lines")
    parts = chunks(lines_of(text, "run the stage `prepare` first"), LINES_PER_CHUNK)
    with write_tokens(stem, vocab_size) as store:
        for chunk in map_in_order(partial(encode_chunk, model=model), parts, processes):
            store.append(chunk.flat, chunk.lengths)
            counts.update(tokens=len(chunk.flat), unknown=chunk.unknown, changed=chunk.changed)
            progress.advance(len(chunk.lengths))
        counts["lines"] = store.sequences
    progress.finish()
    return counts


def encode_chunk(lines: list[str], model: Path) -> EncodedChunk:
    """Encode tokenised `lines` by a subword `model`, loaded once per process; return ids and what the model loses."""
    subwords = load_once(model)
    ids = subwords.encode(lines)
    changed = sum(before != after for before, after in zip(lines, subwords.decode(ids), strict=True))
    flat = np.fromiter((i for sentence in ids for i in sentence), dtype=token_type(len(subwords)))
    return EncodedChunk(flat, np.array([len(sentence) for sentence in ids]), int((flat == UNK).sum()), changed)


load_once = cache(Subwords)


def split_record(src: Counter[str], tgt: Counter[str], where: str) -> ParallelSizes:
    """Return the record of the split at `where` from the counts of both sides, `src` and `tgt`.

    Raises:
        UserError: The sides differ in length.
    """
    if src["lines"] != tgt["lines"]:
        raise UserError(f"{where}: {src['lines']} source but {tgt['lines']} target lines; run `prepare` again")
    counted = {f"src_{what}": src[what] for what in COUNTED} | {f"tgt_{what}": tgt[what] for what in COUNTED}
    return ParallelSizes(pairs=src["lines"], **counted)
