"""The model of a run, with weights from other runs: its language model, and the run it starts from."""

from pathlib import Path

import numpy as np
import torch

from pipeline.config import RunSpec, load_run
from pipeline.core.errors import UserError
from pipeline.core.layout import RUN_FILE, WEIGHTS_FILE
from pipeline.core.records.corpus import EncodedCorpus, read_corpus
from pipeline.models.architectures import build_model
from pipeline.models.language_model.fusion import FusedModel
from pipeline.models.language_model.model import LanguageModel
from pipeline.models.seq2seq import Seq2Seq, TaskModel
from pipeline.training.specification import run_key
from pipeline.training.tensor_file import read_weights


def build_run_model(spec: RunSpec, vocab_sizes: tuple[int, int]) -> Seq2Seq:
    """Return the model that a run trains, on the CPU with new weights; frozen modules have no trained weights yet.

    Raises:
        UserError: The architecture is fused, but its model is no task model.
    """
    model = build_model(spec.model, vocab_sizes)
    if spec.fusion and spec.language_model:
        if not isinstance(model, TaskModel):  # although its settings have a `state_width`
            kind = spec.model.architecture
            raise UserError(f"fusion: architecture {kind} has a `state_width`: derive its model from TaskModel")
        language_model = LanguageModel(spec.language_model.model, vocab_sizes[1])
        fused = FusedModel(spec.fusion, model, language_model, vocab_sizes[1])
        if spec.training.trained_part == "fusion":
            fused.freeze_task()
        model = fused
    model.sampling_rate = spec.training.scheduled_sampling
    return model


def build_initial_model(spec: RunSpec) -> Seq2Seq:
    """Return the run's model as its training starts, on the CPU; new weights come from torch's global generator.

    Raises:
        UserError: A run that it needs is missing, not trained, or has another vocabulary or other shapes.
    """
    corpus = read_corpus(Path(spec.corpus))
    model = build_run_model(spec, corpus.vocab_sizes)
    if spec.language_model and isinstance(model, FusedModel):
        check_vocabulary(spec, Path(spec.language_model.run), corpus)
        load_weights_from(model.language_model, Path(spec.language_model.run), spec)
    if spec.initial:
        initialise_from_run(model, Path(spec.initial), spec)
    return model


def load_language_model(run_folder: Path, spec: RunSpec) -> LanguageModel:
    """Return the trained language model of `run_folder` on the CPU, frozen, for use with the model of `spec`.

    Raises:
        UserError: The run is no language model, not trained, or has another vocabulary.
    """
    lm_spec = load_run(run_folder / RUN_FILE)
    corpus = read_corpus(Path(spec.corpus))
    check_vocabulary(spec, run_folder, corpus)
    model = build_run_model(lm_spec, corpus.vocab_sizes)
    if not isinstance(model, LanguageModel):
        raise UserError(f"{spec.name}: {run_folder}: is a {lm_spec.model.architecture}, not a language model")
    load_weights_from(model, run_folder, spec)
    return model.requires_grad_(False).eval()


def check_vocabulary(spec: RunSpec, run_folder: Path, corpus: EncodedCorpus) -> None:
    """Check that the language model of `run_folder` has the target vocabulary of `corpus`.

    Raises:
        UserError: It has another one.
    """
    theirs = read_corpus(Path(load_run(run_folder / RUN_FILE).corpus))
    if theirs.target_digest != corpus.target_digest:
        raise UserError(
            f"{spec.name}: the language model of {run_folder} has another vocabulary than {spec.corpus}; train one on "
            "text with the same vocabulary"
        )


def initialise_from_run(model: Seq2Seq, run_folder: Path, spec: RunSpec) -> None:
    """Load the weights of a finished run into `model`: all of them, or only those of its task model.

    A run of the same shape gives all weights. One without fusion gives the fused task model all but its output layer,
    which may initialise that of the fusion.

    Raises:
        UserError: The run is not trained, or its weights do not fit.
    """
    initial = load_run(run_folder / RUN_FILE)
    whole = initial.fusion is not None or spec.fusion is None
    if initial.initial:
        initialise_from_run(model, Path(initial.initial), spec)
    module = model.task if isinstance(model, FusedModel) and not whole else model
    unused = load_weights_from(module, run_folder, spec, without=None if whole else "output.")
    if isinstance(model, FusedModel) and not whole and model.config.initialises_output:
        if "output.bias" not in unused:
            raise UserError(f"{spec.name}: {run_folder} has no affine output layer; set fusion.output_start: random")
        model.fusion.initialise_output(unused["output.weight"], unused["output.bias"])


def load_weights_from(
    module: torch.nn.Module, run_folder: Path, spec: RunSpec, without: str | None = None
) -> dict[str, torch.Tensor]:
    """Load the final weights of `run_folder` into a module of the model of `spec`.

    Args:
        module: Receives the weights.
        run_folder: A finished run.
        spec: The run that uses the module, for messages.
        without: Prefix of the names of weights that are not loaded.

    Returns:
        The weights that were not loaded by name, each with its own shape.

    Raises:
        UserError: The run is not trained, or a weight does not fit.
    """
    path = run_folder / WEIGHTS_FILE
    if not path.exists():
        raise UserError(f"{spec.name}: {path}: no such weights; train that run first")
    tensors, _ = read_weights(path, run_key(run_folder), "train that run again")
    own = module.state_dict()
    loaded = {name: value for name, value in tensors.items() if without is None or not name.startswith(without)}
    unfit = sorted(name for name, value in loaded.items() if name not in own or own[name].shape != value.shape)
    if unfit:
        raise UserError(f"{spec.name}: {path}: its {unfit[0]} does not fit this model; name a run of the same sizes")
    module.load_state_dict(loaded, strict=False)
    return {name: value for name, value in tensors.items() if name not in loaded}


def require_positions(model: Seq2Seq, name: str, lengths: np.ndarray, remedy: str) -> None:
    """Check that a `model` has enough positions for sequences.

    Args:
        model: The model.
        name: Names the sequences in the error.
        lengths: Length of each sequence, BOS or EOS included, shape (N,).
        remedy: What to do about model.max_positions, which ends the error.

    Raises:
        UserError: Some are too long.
    """
    last = model.max_positions
    if last is not None and (beyond := int((lengths > last).sum())):
        raise UserError(
            f"{name}: {beyond} of {len(lengths)} are longer than the {last} positions of the model (the longest: "
            f"{lengths.max()}); {remedy} model.max_positions"
        )
