"""Run folders on a small corpus of random speech: recogniser, CTC, fusion and language model, untrained."""

from pathlib import Path

import numpy as np
import torch
import yaml
from made_records import speech_corpus, trained_run

from pipeline.config import load_run
from pipeline.data.sequence_store import write_frames, write_tokens
from pipeline.data.text.vocabulary import FIRST, Alphabet
from pipeline.training.run_model import build_initial_model
from pipeline.training.specification import run_key
from pipeline.training.tensor_file import tensors_of, write_tensor_file

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


def write_run(folder: Path, corpus: Path, model: dict, sharpness: float = 6.0, **changes) -> Path:
    """run.yaml, random weights and done.json; `sharpness` multiplies the output layer, for outputs that differ."""
    training = {
        "max_steps": 1,
        "warmup_steps": 1,
        "sentences_per_update": 4,
        "label_smoothing": 0.0,
        "validate_every": 1,
        "checkpoint_every": 1,
    }
    spec = dict.fromkeys(("paper", "system", "dataset", "scale"), folder.name) | {"seed": 1, "corpus": str(corpus)}
    folder.mkdir(parents=True)
    (folder / "run.yaml").write_text(yaml.safe_dump(spec | {"model": model, "training": training} | changes))
    # not shifted by REPRISE_TEST_SEED: not every random recogniser writes spaces, which a test of word bonuses needs
    torch.random.manual_seed(int.from_bytes(folder.name.encode(), "little") % 1000)
    built = build_initial_model(load_run(folder / "run.yaml"))
    with torch.no_grad():
        for name, weight in built.named_parameters():
            if name.endswith("output.weight") and weight.requires_grad:
                weight.mul_(sharpness)
    key = run_key(folder)
    write_tensor_file(folder / "model.safetensors", tensors_of(built), {"key": key, "step": 1})
    trained_run(key=key, steps=1).write(folder / "done.json")
    return folder
