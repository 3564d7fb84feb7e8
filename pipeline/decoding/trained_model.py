"""A run's model with trained weights, ready for decoding or measurements."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from pipeline.config import RunSpec, load_run, run_folder_above
from pipeline.core.errors import REPAIR, UserError
from pipeline.core.layout import DONE_FILE, RUN_FILE
from pipeline.core.records.corpus import AnyCorpus, read_corpus
from pipeline.core.records.training import TrainedRun
from pipeline.data.store.encoded_files import require_whole
from pipeline.models.seq2seq import Seq2Seq
from pipeline.training.checkpoint_files import read_metadata
from pipeline.training.machine import autocast, prepare_device
from pipeline.training.run_model import build_initial_model
from pipeline.training.specification import run_key
from pipeline.training.tensor_file import load_weights


@dataclass(frozen=True)
class TrainedModel:
    """A trained model with the run that it comes from.

    Attributes:
        spec: Specification of the run.
        model: In evaluation mode, on `device`.
        device: Where the model is.
        corpus: Corpus of the training.
        weights_digest: Digest of the loaded weights.
        training_digest: Digest of the run's final weights; the loaded ones may be averages.
    """

    spec: RunSpec
    model: Seq2Seq
    device: torch.device
    corpus: AnyCorpus
    weights_digest: str
    training_digest: str | None

    @classmethod
    def load(cls, weights: Path, threads: int | None = None) -> "TrainedModel":
        """Load weights into the model of the run whose folder they are in, on a GPU if there is one.

        Args:
            weights: Final or averaged weights.
            threads: CPU threads; None takes the cores that this process may use.

        Raises:
            UserError: The weights are missing, damaged, of another run, or do not fit.
        """
        if not weights.exists():
            raise UserError(f"{weights}: no such weights; {REPAIR}")
        run_folder = run_folder_of(weights)
        spec = load_run(run_folder / RUN_FILE)
        corpus = read_corpus(Path(spec.corpus))
        require_whole(Path(spec.corpus))
        device = prepare_device(threads)
        model = build_initial_model(spec)
        load_weights(model, weights, run_key(run_folder))
        done = TrainedRun.read_if_there(run_folder / DONE_FILE)
        training_digest = done.weights_digest if done else None
        return cls(spec, model.to(device).eval(), device, corpus, read_metadata(weights)["digest"], training_digest)

    def require_positions(self, name: str, lengths: np.ndarray) -> None:
        """Check that the model has enough positions for sequences.

        Args:
            name: The sequences, for the message.
            lengths: Their lengths, BOS or EOS included.

        Raises:
            UserError: Some are too long.
        """
        last = self.model.max_positions
        if last is None or not (beyond := int((lengths > last).sum())):
            return
        raise UserError(
            f"{name}: {beyond} of {len(lengths)} are longer than the {last} positions of {self.spec.name} (the "
            f"longest: {lengths.max()}); train it with a larger model.max_positions"
        )

    def autocast(self) -> AbstractContextManager:
        """Return autocast in the run's precision, or in float32 if the machine is faster in it."""
        return autocast(self.device, self.spec)


def run_folder_of(weights: Path) -> Path:
    """Return the nearest folder above `weights` that holds a run.

    Raises:
        UserError: There is none.
    """
    if folder := run_folder_above(weights):
        return folder
    raise UserError(f"{weights}: no run.yaml in any folder above it; keep weights in the folder of their run")
