"""Small encoded speech corpora of random frames and transcripts, written without audio."""

from pathlib import Path

import numpy as np
from made_records import speech_corpus

from pipeline.core.records.corpus import SpeechSizes
from pipeline.data.encoded_files import NOISE_STEM
from pipeline.data.sequence_store import write_frames, write_tokens
from pipeline.data.text.vocabulary import FIRST, Alphabet

FEATURES = 5


def write_speech(folder: Path, utterances: int, seed: int, shortest: int = 1) -> dict[str, list[np.ndarray]]:
    """Write an encoded corpus and return the frames of each split."""
    rng = np.random.default_rng(seed)
    written, records = {}, {}
    for split in ("train", "dev", "test"):
        counts = rng.integers(shortest, 60, utterances)
        written[split] = [rng.normal(2, 3, (count, FEATURES)).astype(np.float16) for count in counts]
        texts = [rng.integers(FIRST, len(Alphabet()), rng.integers(1, 9)) for _ in counts]
        with write_frames(folder / split) as frames, write_tokens(folder / f"{split}.tgt", len(Alphabet())) as tokens:
            for utterance, text in zip(written[split], texts, strict=True):
                frames.append(utterance)
                tokens.append(text, [len(text)])
        frames_in_all = int(counts.sum())
        symbols = sum(map(len, texts))
        records[split] = SpeechSizes(pairs=utterances, src_tokens=frames_in_all, tgt_tokens=symbols, seconds=1.0)
    with write_frames(folder / NOISE_STEM) as noises:
        for _ in range(3):
            noises.append(rng.normal(0, 3, (40, FEATURES)))
    speech_corpus(2.0, 3.0, FEATURES, splits=records, digest=f"{seed}").write(folder / "corpus.json")
    return written
