"""Alignments of speech recognisers at every kept checkpoint of a training.

Dimensions: B utterances, T target characters, S encoder positions.
"""

import logging
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from pipeline.config import load_run
from pipeline.core.errors import UserError
from pipeline.core.layout import RUN_FILE
from pipeline.core.records.outputs import AlignmentMaps
from pipeline.data.batches.corpus_batches import evaluation_split
from pipeline.data.text.vocabulary import vocabularies
from pipeline.models.language_model.fusion import FusedModel
from pipeline.models.seq2seq import Seq2Seq
from pipeline.models.settings import PAD
from pipeline.training import checkpoint_files, machine, run_model, specification, tensor_file

log = logging.getLogger(__name__)
MEASURED = 64
"""Utterances over which the entropy is averaged."""


def write_alignments(run: Path, split: str, threads: int | None, out: Path) -> None:
    """Write the attention over speech at every kept checkpoint of a training.

    Write {split, utterances, utterance, text, steps, entropy, maps, weights_digest}. `maps` has α (characters x encoder
    positions) of the utterance of median length at each of `steps`. `entropy` has the mean entropy of α in nats over
    `utterances` evenly spaced utterances, teacher-forced.

    Args:
        run: Folder of a finished run.
        split: Split that is aligned.
        threads: CPU threads; None = all cores that this process may use.
        out: JSON file to write.

    Raises:
        UserError: No checkpoint is kept, or the model has no attention over speech.
    """
    spec, key = load_run(run / RUN_FILE), specification.run_key(run)
    files = checkpoint_files.weight_files(run)
    if not files:
        raise UserError(f"{run}/checkpoints: no weights are kept; train the run again")
    device = machine.prepare_device(threads)
    model = run_model.build_initial_model(spec).to(device).eval()
    recogniser = recogniser_of(model, spec.name)
    pairs = evaluation_split(spec, Path(spec.corpus), split)
    shown = median_length(pairs.tgt_lengths)
    chosen = np.unique(np.linspace(0, len(pairs.tgt) - 1, min(MEASURED, len(pairs.tgt))).round().astype(np.int64))
    single, batch = pairs.batch(np.array([shown])).to(device), pairs.batch(chosen).to(device)
    entropies, maps = [], []
    for _, path in files:
        tensor_file.load_weights(model, path, key)
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
        weights_digest=checkpoint_files.read_metadata(files[-1][1])["digest"],
    )
    record.write(out)
    log.info("%s: entropy %.2f nats at the first checkpoint, %.2f at the last", out, entropies[0], entropies[-1])


@runtime_checkable
class AttentionOverSpeech(Protocol):
    """A model whose decoder attends to speech."""

    def alignments(self, batch) -> Tensor:
        """Compute the alignment α of every target position, teacher-forced.

        Args:
            batch: Speech and transcripts of B utterances.

        Returns:
            Shape (B, T, S).
        """


def recogniser_of(model: Seq2Seq, name: str) -> AttentionOverSpeech:
    """Return the part of a model that attends to speech.

    Raises:
        UserError: There is none.
    """
    part = model.task if isinstance(model, FusedModel) else model
    if not isinstance(part, AttentionOverSpeech):
        raise UserError(f"{name}: has no attention over speech; choose a speech_attention model")
    return part


def median_length(lengths: np.ndarray) -> int:
    """Return the index of the first utterance of median length among `lengths` (N,)."""
    return int(np.flatnonzero(lengths == np.sort(lengths)[len(lengths) // 2])[0])


def mean_entropy(alignments: Tensor, real: Tensor) -> float:
    """Compute the mean entropy, in nats, of `alignments` (B, T, S) at the `real` positions (B, T)."""
    return float(-torch.xlogy(alignments, alignments).sum(-1)[real].mean())
