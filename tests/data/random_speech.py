"""Small encoded speech corpora of random frames and transcripts, written without audio."""

from pathlib import Path

import numpy as np

from pipeline.data.alphabet import FIRST, Alphabet
from pipeline.data.frame_store import write_frames
from pipeline.data.noise_mixing import NOISE_STEM
from pipeline.data.token_store import write_tokens
from pipeline.files import write_json

FEATURES = 5


def write_speech(
    folder: Path, utterances: int, seed: int, longest: int = 60, splits=("train", "dev", "test")
) -> dict[str, list[np.ndarray]]:
    """Write an encoded corpus; returns the frames of each split."""
    rng = np.random.default_rng(seed)
    written, records = {}, {}
    for split in splits:
        counts = rng.integers(1, longest, utterances)
        written[split] = [rng.normal(2, 3, (count, FEATURES)).astype(np.float16) for count in counts]
        texts = [rng.integers(FIRST, len(Alphabet()), rng.integers(1, 9)) for _ in counts]
        with write_frames(folder / split) as frames, write_tokens(folder / f"{split}.tgt", len(Alphabet())) as tokens:
            for one, text in zip(written[split], texts, strict=True):
                frames.append(one)
                tokens.append(text, [len(text)])
        records[split] = {"pairs": utterances, "src_tokens": int(counts.sum()), "tgt_tokens": sum(map(len, texts))}
    with write_frames(folder / NOISE_STEM) as noises:
        for _ in range(3):
            noises.append(rng.normal(0, 3, (40, FEATURES)))
    statistics = {"mean": [2.0] * FEATURES, "deviation": [3.0] * FEATURES}
    record = {"kind": "speech", "features": FEATURES, "vocab_size": len(Alphabet()), "statistics": statistics}
    write_json(folder / "corpus.json", record | {"splits": records, "digest": f"{seed}"})
    return written
