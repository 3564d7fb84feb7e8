"""A run's model with the weights that it takes from other runs: its language model, and the model it starts from."""

from pathlib import Path

import torch

from pipeline.config import RunSpec, load_run
from pipeline.core.errors import UserError
from pipeline.core.layout import RUN_FILE, WEIGHTS_FILE
from pipeline.core.records.corpus import EncodedCorpus, read_corpus
from pipeline.models.build import build_model
from pipeline.models.fusion.model import FusedModel
from pipeline.models.language_model.model import LanguageModel
from pipeline.models.seq2seq import Seq2Seq, TaskModel
from pipeline.training.key import run_key
from pipeline.training.tensor_file import read_weights


def build_run(spec: RunSpec, vocab_sizes: tuple[int, int]) -> Seq2Seq:
    """The model that a run trains, with its fusion; frozen parts hold no trained weights yet.

    Raises:
        UserError: the model has no task state that a language model could be fused with.
    """
    model = build_model(spec.model, vocab_sizes)
    if spec.fusion and spec.language_model:
        if not isinstance(model, TaskModel):
            raise UserError(f"{spec.name}: a model of architecture {spec.model.architecture} has no decoder to fuse")
        language_model = LanguageModel(spec.language_model.model, vocab_sizes[1])
        fused = FusedModel(spec.fusion, model, language_model, vocab_sizes[1])
        if spec.training.trained_part == "fusion":
            fused.freeze_task()
        model = fused
    model.sampling_rate = spec.training.scheduled_sampling
    return model


def assemble(spec: RunSpec) -> Seq2Seq:
    """The run's model as its training begins; new weights are drawn from torch's global generator.

    Raises:
        UserError: a run that it needs is missing, is not trained, or has another vocabulary or other shapes.
    """
    corpus = read_corpus(Path(spec.corpus))
    model = build_run(spec, corpus.vocab_sizes)
    if spec.language_model and isinstance(model, FusedModel):
        check_vocabulary(spec, Path(spec.language_model.run), corpus)
        fill(model.language_model, Path(spec.language_model.run), spec)
    if spec.initial:
        take_over(model, Path(spec.initial), spec)
    return model


def load_language_model(run_folder: Path, spec: RunSpec) -> LanguageModel:
    """The trained language model of `run_folder`, for use beside the model of `spec`. Raises UserError."""
    lm_spec = load_run(run_folder / RUN_FILE)
    corpus = read_corpus(Path(spec.corpus))
    check_vocabulary(spec, run_folder, corpus)
    model = build_run(lm_spec, corpus.vocab_sizes)
    if not isinstance(model, LanguageModel):
        raise UserError(f"{spec.name}: {run_folder}: is a {lm_spec.model.architecture}, not a language model")
    fill(model, run_folder, spec)
    return model.requires_grad_(False).eval()


def check_vocabulary(spec: RunSpec, run_folder: Path, corpus: EncodedCorpus) -> None:
    """Raises UserError unless the language model of `run_folder` has the target vocabulary of `corpus`."""
    theirs = read_corpus(Path(load_run(run_folder / RUN_FILE).corpus))
    if theirs.target_digest != corpus.target_digest:
        raise UserError(
            f"{spec.name}: the language model of {run_folder} has another vocabulary than {spec.corpus}; train one on "
            "text of the same vocabulary"
        )


def take_over(model: Seq2Seq, run_folder: Path, spec: RunSpec) -> None:
    """Put the weights of a finished run into `model`: all of them, or those of its task model alone.

    A run of the same shape gives everything; one without fusion gives the fused task model all but its output layer,
    which may become the beginning of the fusion's.
    """
    initial = load_run(run_folder / RUN_FILE)
    whole = initial.fusion is not None or spec.fusion is None
    if initial.initial:
        take_over(model, Path(initial.initial), spec)
    part = model.task if isinstance(model, FusedModel) and not whole else model
    left = fill(part, run_folder, spec, without=None if whole else "output.")
    if isinstance(model, FusedModel) and not whole and model.config.takes_output:
        if "output.bias" not in left:
            raise UserError(f"{spec.name}: {run_folder} has no affine output layer; set fusion.output_start: random")
        model.fusion.take_output(left["output.weight"], left["output.bias"])


def fill(part: torch.nn.Module, run_folder: Path, spec: RunSpec, without: str | None = None) -> dict[str, torch.Tensor]:
    """Load the final weights of `run_folder` into `part` of the model of `spec`; returns those left out.

    without: what the names of weights that `part` has no place for begin with.
    """
    path = run_folder / WEIGHTS_FILE
    if not path.exists():
        raise UserError(f"{spec.name}: {path}: no such weights; train that run first")
    tensors, _ = read_weights(path, run_key(run_folder), "train that run again")
    own = part.state_dict()
    given = {name: value for name, value in tensors.items() if without is None or not name.startswith(without)}
    strange = sorted(name for name, value in given.items() if name not in own or own[name].shape != value.shape)
    if strange:
        raise UserError(f"{spec.name}: {path}: its {strange[0]} does not fit this model; name a run of the same sizes")
    part.load_state_dict(given, strict=False)
    return {name: value for name, value in tensors.items() if name not in given}
