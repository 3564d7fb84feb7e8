"""A run folder with an untrained model on a toy corpus: all that decoding reads, without a training."""

from pathlib import Path

import numpy as np
import torch
import yaml
from made_records import parallel_corpus, trained_run

from pipeline.config import load_run
from pipeline.core.digests import sha256_json
from pipeline.data.sequence_store import write_tokens
from pipeline.data.text.subwords import train
from pipeline.data.text.vocabulary import Subwords
from pipeline.models.architectures import build_model
from pipeline.models.transformer.settings import TransformerConfig
from pipeline.models.weighted_transformer.settings import WeightedTransformerConfig
from pipeline.training.specification import run_key
from pipeline.training.tensor_file import tensors_of, write_tensor_file

VOCABULARY = 60
SHAPE = {"num_layers": 1, "d_model": 16, "d_ff": 32, "num_heads": 2}
TRANSFORMER = TransformerConfig(architecture="transformer", **SHAPE)
WEIGHTED = WeightedTransformerConfig(architecture="weighted_transformer", **SHAPE)
WORDS = ["der", "die", "hund", "frau", "sieht", "geht", "schnell", "und", "alt", ",", "."]


def write_corpus(folder: Path, pairs: int = 20) -> list[str]:
    """`subwords.model` and `encoded/` with one split, test; returns its target lines, tokenised."""
    generator = np.random.default_rng(0)
    lines = [" ".join(generator.choice(WORDS, size=generator.integers(1, 9))) for _ in range(pairs)]
    folder.mkdir(parents=True)
    (folder / "subwords.model").write_bytes(train("bpe", iter(lines * 3), VOCABULARY, "toy"))
    ids = Subwords(folder / "subwords.model").encode(lines)
    for side in ("src", "tgt"):
        with write_tokens(folder / "encoded" / f"test.{side}", VOCABULARY) as store:
            store.append(
                np.array([i for sentence in ids for i in sentence]), np.array([len(sentence) for sentence in ids])
            )
    parallel_corpus(VOCABULARY, digest=sha256_json(lines)).write(folder / "encoded" / "corpus.json")
    return lines


def write_run(folder: Path, corpus: Path, model: TransformerConfig = TRANSFORMER, checkpoints: int = 0, seed: int = 1):
    """run.yaml, final weights, `checkpoints` earlier ones and done.json; returns the final model."""
    steps = max(checkpoints, 1)
    training = {"max_steps": steps, "warmup_steps": 1, "branch_warmup_steps": 1, "tokens_per_update": 100}
    spec = {"paper": "toy", "system": "base", "dataset": "toy", "scale": "demo", "seed": seed}
    spec |= {"corpus": str(corpus / "encoded"), "model": model.model_dump()}
    spec |= {"training": training | {"validate_every": 1, "checkpoint_every": 1}}
    folder.mkdir(parents=True)
    (folder / "run.yaml").write_text(yaml.safe_dump(spec))
    key = run_key(folder)
    for step in range(1, steps + 1):
        torch.manual_seed(100 * seed + step)
        built = build_model(load_run(folder / "run.yaml").model, (VOCABULARY, VOCABULARY)).eval()
        facts = {"key": key, "step": step}
        if checkpoints:
            write_tensor_file(folder / "checkpoints" / f"step-{step}.safetensors", tensors_of(built), facts)
    write_tensor_file(folder / "model.safetensors", tensors_of(built), facts)
    trained_run(key=key, steps=steps).write(folder / "done.json")
    return built
