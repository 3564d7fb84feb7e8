"""A packed model that no training made."""

import json
import random
from pathlib import Path

import sentencepiece
from made_records import parallel_corpus
from real_project import real_project

from pipeline.core.digests import sha256_file
from pipeline.training.run_model import build_run_model
from pipeline.training.tensor_file import tensors_of, write_tensor_file
from reprise.model_input import Preparation
from reprise.portable import SUMS_FILE, PortableModel

KEY = "0" * 64


def write_subwords(folder: Path, size: int) -> None:
    draw = random.Random(1)
    words = ("".join(draw.choices("abcdefgh", k=4)) for _ in range(600))
    reserved = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, "minloglevel": 2}
    place = {"sentence_iterator": iter(words), "model_prefix": str(folder / "subwords"), "model_type": "bpe"}
    sentencepiece.SentencePieceTrainer.train(vocab_size=size, **place, **reserved)


def pack(
    folder: Path, subwords: int = 60, model: dict | None = None, corpus_says: int = 60, **prepared: object
) -> Path:
    """An untrained Transformer of 60 subwords. prepared: what its preparation says otherwise; model, corpus_says: what
    its settings do."""
    project = real_project({"scale": "smoke"})
    spec = project.run_spec(project.runs_of("attention", "base", "wmt14-en-de")[0]).map_folders(lambda _: "packed")
    corpus = parallel_corpus(60)
    weights = tensors_of(build_run_model(spec, corpus.vocab_sizes))
    write_tensor_file(folder / "model.safetensors", weights, {"key": KEY})
    write_subwords(folder, subwords)
    terms = dict.fromkeys(("run", "title", "licence", "citation", "commit"), "toy")
    record = PortableModel(
        spec=spec.model_copy(update={"model": spec.model.model_copy(update=model or {})}),
        corpus=parallel_corpus(corpus_says),
        preparation=Preparation.model_validate({"form": "sentences", "src": "en", "tgt": "de"} | prepared),
        decoding=project.decoding("attention", "base", "final"),
        scores={},
        redistributable=True,
        weights=KEY,
        training=None,
        **terms,
    )
    (folder / "model.json").write_text(json.dumps(record.model_dump()))
    write_sums(folder)
    return folder


def write_sums(folder: Path) -> None:
    """Write the digests of all files of a packed model, as somebody who altered one would."""
    files = sorted(path for path in folder.iterdir() if path.name != SUMS_FILE)
    (folder / SUMS_FILE).write_text("".join(f"{sha256_file(path)}  {path.name}\n" for path in files))
