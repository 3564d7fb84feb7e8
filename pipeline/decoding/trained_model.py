"""A run's model with given weights, ready to decode or to be measured."""

import argparse
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


def model_arguments(parser: argparse.ArgumentParser, out: str) -> None:
    """The options of every stage that loads a trained model; `out`: what it writes, in words."""
    parser.add_argument("--weights", type=Path, required=True, help="final or averaged weights in a run's folder")
    parser.add_argument("--threads", type=int, help="CPU threads; default: all")
    parser.add_argument("--out", type=Path, required=True, help=out)


@dataclass(frozen=True)
class TrainedModel:
    spec: RunSpec
    model: Seq2Seq
    """In evaluation mode, on `device`."""
    device: torch.device
    corpus: AnyCorpus
    """That of the training."""
    weights_digest: str
    training_digest: str | None
    """Of the weights that its training ended in, from which those that are loaded may be averaged."""

    @classmethod
    def load(cls, weights: Path, threads: int | None = None) -> "TrainedModel":
        """The model of the run that `weights` lie in the folder of, on a GPU if there is one.

        threads: of the CPU; None = the cores this process may use.

        Raises:
            UserError: the weights are missing, damaged, of another run, or do not fit.
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
        ended_in = done.weights_digest if done else None
        return cls(spec, model.to(device).eval(), device, corpus, read_metadata(weights)["digest"], ended_in)

    def require_positions(self, name: str, lengths: np.ndarray) -> None:
        """Raises UserError, counting them, when sequences are longer than the model has positions for.

        lengths: of the sequences `name`, BOS or EOS counted.
        """
        last = self.model.max_positions
        if last is None or not (beyond := int((lengths > last).sum())):
            return
        raise UserError(
            f"{name}: {beyond} of {len(lengths)} have more than the {last} positions that {self.spec.name} has vectors "
            f"for (the longest: {lengths.max()}); train it with a larger model.max_positions"
        )

    def autocast(self) -> AbstractContextManager:
        """Matrix products in the precision that its run asks for, or the machine is faster in."""
        return autocast(self.device, self.spec)


def run_folder_of(weights: Path) -> Path:
    """The nearest folder above `weights` that holds a run. Raises UserError when there is none."""
    if folder := run_folder_above(weights):
        return folder
    raise UserError(f"{weights}: no run.yaml in any folder above it; weights are decoded where their run is")
