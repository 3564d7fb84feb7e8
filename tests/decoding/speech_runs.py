"""Run folders on a small corpus of random speech: recogniser, CTC, fusion and language model, untrained."""

from pathlib import Path

import numpy as np
import torch
from made_records import speech_corpus, trained_run
from run_folders import write_settings, write_weights

from pipeline.config import load_run
from pipeline.data.sequence_store import write_frames, write_tokens
from pipeline.data.text.vocabulary import FIRST, Alphabet
from pipeline.training.run_model import build_initial_model
from pipeline.training.specification import run_key

UTTERANCES, FEATURES = 13, 40
RECOGNISER = {"architecture": "speech_attention", "encoder_layers": 2, "encoder_width": 4, "decoder_width": 6}
RECOGNISER |= {"pooled_layers": 1, "embedding_width": 4, "attention_width": 5, "location_filters": 2}
CTC = {"architecture": "ctc", "channels": 2, "num_layers": 1, "hidden_width": 6}
JOINT = {"architecture": "joint_recogniser", "num_layers": 1, "d_model": 8, "d_ff": 12, "num_heads": 2}
JOINT |= {"channels": 2, "encoder_layers": 1}
LM = {"architecture": "language_model", "num_layers": 1, "embedding_width": 4, "hidden_width": 8}
COLD = {"kind": "cold", "width": 5}


def write_corpus(folder: Path, seed: int, mean: float = 0.0) -> Path:
    """An encoded corpus of splits train, dev and test, whose features have this mean."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    for split in ("train", "dev", "test"):
        texts = [rng.integers(FIRST, len(Alphabet()), rng.integers(2, 9)) for _ in range(UTTERANCES)]
        with write_frames(folder / split) as frames, write_tokens(folder / f"{split}.tgt", len(Alphabet())) as tokens:
            for text in texts:
                frames.append(rng.normal(mean, 1, (int(rng.integers(16, 40)), FEATURES)))
                tokens.append(text, [len(text)])
    speech_corpus(mean, dataset=folder.name, digest=f"{folder.name} {seed}").write(folder / "corpus.json")
    return folder


def write_run(folder: Path, corpus: Path, model: dict, sharpness: float = 6.0, training: dict | None = None, **changes):
    """run.yaml, random weights and done.json; `sharpness` multiplies the output layer, for outputs that differ."""
    training = {"sentences_per_update": 4, "label_smoothing": 0.0} | (training or {})
    write_settings(folder, corpus, model, training, **changes)
    # not shifted by REPRISE_TEST_SEED: not every random recogniser writes spaces, which a test of word bonuses needs
    torch.random.manual_seed(int.from_bytes(folder.name.encode(), "little") % 1000)
    built = build_initial_model(load_run(folder / "run.yaml"))
    for name, weight in built.named_parameters():
        if name.endswith("output.weight") and weight.requires_grad:
            weight.data.mul_(sharpness)
    write_weights(folder, built)
    trained_run(key=run_key(folder), steps=1).write(folder / "done.json")
    return folder
