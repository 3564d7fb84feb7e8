"""A run folder with an untrained model on a toy corpus: all that decoding reads, without a training."""

from pathlib import Path

import numpy as np
import torch
from made_records import parallel_corpus, trained_run
from run_folders import write_settings, write_weights

from pipeline.config import load_run
from pipeline.core.digests import sha256_json
from pipeline.data.sequence_store import write_tokens
from pipeline.data.text.subwords import train
from pipeline.data.text.vocabulary import Subwords
from pipeline.models.architectures import build_model
from pipeline.models.transformer.settings import TransformerConfig
from pipeline.models.weighted_transformer.settings import WeightedTransformerConfig
from pipeline.training.specification import run_key

VOCABULARY = 60
SHAPE = {"num_layers": 1, "d_model": 16, "d_ff": 32, "num_heads": 2}
TRANSFORMER = TransformerConfig(architecture="transformer", **SHAPE)
WEIGHTED = WeightedTransformerConfig(architecture="weighted_transformer", **SHAPE)
WORDS = ["der", "die", "hund", "frau", "sieht", "geht", "schnell", "und", "alt", ",", "."]


def write_corpus(folder: Path, pairs: int = 20) -> Path:
    """Write `subwords.model` and `encoded/` with one split, test; returns the folder."""
    generator = np.random.default_rng(0)
    lines = [" ".join(generator.choice(WORDS, size=generator.integers(1, 15))) for _ in range(pairs)]
    folder.mkdir(parents=True)
    (folder / "subwords.model").write_bytes(train("bpe", iter(lines * 3), VOCABULARY, "toy"))
    ids = Subwords(folder / "subwords.model").encode(lines)
    for side in ("src", "tgt"):
        with write_tokens(folder / "encoded" / f"test.{side}", VOCABULARY) as store:
            store.append(np.concatenate(ids), np.array([*map(len, ids)]))
    parallel_corpus(VOCABULARY, digest=sha256_json(lines)).write(folder / "encoded" / "corpus.json")
    return folder


def write_run(folder: Path, corpus: Path, model: TransformerConfig = TRANSFORMER, checkpoints: int = 0, seed: int = 1):
    """run.yaml, final weights, `checkpoints` earlier ones and done.json; returns the final model."""
    steps = max(checkpoints, 1)
    training = {"max_steps": steps, "branch_warmup_steps": 1, "tokens_per_update": 100}
    names = {"paper": "toy", "system": "base", "dataset": "toy", "scale": "demo"}
    write_settings(folder, corpus / "encoded", model.model_dump(), training, **names, seed=seed)
    for step in range(1, steps + 1):
        torch.manual_seed(100 * seed + step)
        built = build_model(load_run(folder / "run.yaml").model, (VOCABULARY, VOCABULARY)).eval()
        if checkpoints:
            write_weights(folder, built, f"checkpoints/step-{step}.safetensors", step)
    write_weights(folder, built, step=steps)
    trained_run(key=run_key(folder), steps=steps).write(folder / "done.json")
    return built
