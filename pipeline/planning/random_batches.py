"""Batches of random symbols or frames, as long as those of a corpus: what a calibration trains and decodes."""

import torch

from pipeline.config import RunSpec
from pipeline.core.symbols import BOS, EOS, PAD
from pipeline.data.batches.corpus_batches import AnyBatch, input_kind
from pipeline.data.batches.fixed_size_batches import TextOnlyBatch
from pipeline.data.batches.parallel_batches import TextBatch
from pipeline.data.batches.speech_batches import SpeechBatch
from pipeline.data.store.sequence_store import FEATURES
from pipeline.planning.corpus_size import Corpus


def random_batch(spec: RunSpec, corpus: Corpus, count: int, src_length: int, tgt_length: int) -> AnyBatch:
    """`count` sequences, every second one a position shorter, so that there is something to mask.

    Args:
        src_length: subwords with EOS, or frames; of text without a source it does not matter.
        tgt_length: symbols with EOS.
    """
    tgt = symbols(corpus.tgt_vocab, count, tgt_length)
    tgt_in = torch.cat((torch.full((count, 1), BOS), tgt[:, :-1]), 1)
    match input_kind(spec, corpus.kind):
        case "text":
            return TextOnlyBatch(tgt_in, tgt)
        case "speech":
            counts = torch.full((count,), src_length)
            counts[1::2] -= 1
            frames = torch.randn(count, src_length, FEATURES)
            frames[1::2, -1] = 0.0
            return SpeechBatch(frames, counts, tgt_in, tgt)
    return TextBatch(symbols(corpus.src_vocab, count, src_length), tgt_in, tgt)


def symbols(vocab: int, count: int, length: int) -> torch.Tensor:
    """(count, length), each row ended by EOS."""
    rows = torch.randint(EOS + 1, vocab, (count, length))
    rows[:, -1] = EOS
    rows[1::2, -1] = PAD
    return rows
