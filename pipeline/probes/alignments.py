"""How a recogniser's attention became diagonal: its alignments at every kept checkpoint of a training.

    python -m pipeline alignments --run work/demo/runs/coldfusion/CF4/…/seed1-… --split dev --out alignments/dev.json

Writes alignments/dev.json: {split, utterances, utterance, text, steps, entropy, maps, weights_digest}. `maps` has
α (characters x encoder positions) of one utterance, that of median length, after each of `steps` updates; `entropy` the
mean entropy of α in nats over `utterances` utterances, evenly spaced, teacher-forced.
"""

import argparse
import logging
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from pipeline.config import load_run
from pipeline.core.errors import UserError
from pipeline.core.layout import RUN_FILE
from pipeline.core.records.probes import AlignmentMaps
from pipeline.core.symbols import PAD
from pipeline.data.batches.corpus_batches import evaluation_split, normalisation_corpus
from pipeline.data.text.vocabulary import vocabularies
from pipeline.models.fusion.model import FusedModel
from pipeline.models.seq2seq import Seq2Seq
from pipeline.training.checkpoint import load_weights, weight_files
from pipeline.training.key import run_key
from pipeline.training.machine import ready
from pipeline.training.parts import assemble
from pipeline.training.tensor_header import read_facts

log = logging.getLogger(__name__)
MEASURED = 64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", dest="run_folder", type=Path, required=True, help="folder of a finished run")
    parser.add_argument("--split", default="dev", help="train, dev or test")
    parser.add_argument("--threads", type=int, help="CPU threads; default: all")
    parser.add_argument("--out", type=Path, required=True, help="a .json file")


def run(args: argparse.Namespace) -> None:
    write_alignments(args.run_folder, args.split, args.out, args.threads)


def write_alignments(run_folder: Path, split: str, out: Path, threads: int | None) -> None:
    """Write the alignments of a split at every kept checkpoint of a run to `out`.

    Raises:
        UserError: No checkpoint is kept, or the model has no attention over speech.
    """
    spec, key = load_run(run_folder / RUN_FILE), run_key(run_folder)
    files = weight_files(run_folder)
    if not files:
        raise UserError(f"{run_folder}/checkpoints: no weights are kept; train the run again")
    device = ready(threads)
    model = assemble(spec).to(device).eval()
    recogniser = recogniser_of(model, spec.name)
    pairs = evaluation_split(Path(spec.corpus), split, normalisation_corpus(spec))
    shown = median_length(pairs.tgt_lengths)
    chosen = np.unique(np.linspace(0, len(pairs.tgt) - 1, min(MEASURED, len(pairs.tgt))).round().astype(np.int64))
    single, batch = pairs.batch(np.array([shown])).to(device), pairs.batch(chosen).to(device)
    entropies, maps = [], []
    for _, path in files:
        load_weights(model, path, key)
        with torch.inference_mode():
            maps.append(recogniser.alignments(single)[0].round(decimals=4).tolist())
            entropies.append(mean_entropy(recogniser.alignments(batch), batch.tgt_out != PAD))
    record = AlignmentMaps(
        split=split,
        utterances=len(chosen),
        utterance=shown,
        text=vocabularies(Path(spec.corpus))[1].decode([pairs.tgt[shown]])[0],
        steps=[step for step, _ in files],
        entropy=entropies,
        maps=maps,
        weights_digest=read_facts(files[-1][1])["digest"],
    )
    record.write(out)
    log.info("%s: entropy %.2f nats at first, %.2f in the end", out, entropies[0], entropies[-1])


@runtime_checkable
class AttentionOverSpeech(Protocol):
    """What is looked into."""

    def alignments(self, batch) -> Tensor:
        """α of every target position, (B, T, S), teacher-forced."""


def recogniser_of(model: Seq2Seq, name: str) -> AttentionOverSpeech:
    """The part that looks at speech. Raises UserError when there is none."""
    part = model.task if isinstance(model, FusedModel) else model
    if not isinstance(part, AttentionOverSpeech):
        raise UserError(f"{name}: has no attention over speech")
    return part


def median_length(lengths: np.ndarray) -> int:
    """The first utterance of median length."""
    return int(np.flatnonzero(lengths == np.sort(lengths)[len(lengths) // 2])[0])


def mean_entropy(alignments: Tensor, real: Tensor) -> float:
    """Nats, over the positions marked in `real` (B, T), of alignments (B, T, S)."""
    return float(-torch.xlogy(alignments, alignments).sum(-1)[real].mean())
