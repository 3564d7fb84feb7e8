"""A corpus of random symbols to be copied, and run folders on it."""

import math
import os
import shutil
import signal
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch
from copy_corpus import write_copy_corpus
from made_records import MACHINE
from run_folders import write_settings

from pipeline.config import load_run
from pipeline.core.records.training import Loss
from pipeline.training import setup, trainer, validation
from pipeline.training.checkpoint import Checkpoints
from pipeline.training.distributed import Group
from pipeline.training.job import train_run
from pipeline.training.ownership import StopRequest
from pipeline.training.progress import Progress
from pipeline.training.specification import run_key
from pipeline.training.trainer import Trainer
from pipeline.training.validation import Validation

TRANSFORMER = {"num_layers": 1, "d_model": 16, "d_ff": 32, "num_heads": 2}
RECURRENT = {"d_embedding": 12, "d_state": 12, "d_attention": 16, "d_readout": 12}
MODELS = {
    "transformer": TRANSFORMER,
    "weighted_transformer": TRANSFORMER,
    # init_scale: no gradient may be so small that Adam follows its rounding
    "recurrent": {"channels": "ntm-rnn-emb", **RECURRENT, "init_scale": 0.5},
    "convolutional": {"encoder_layers": 1, "decoder_layers": 2, "d_embedding": 12, "d_hidden": 16, "d_readout": 12},
}


@pytest.fixture(autouse=True)
def quick_validations_and_any_number_of_saves(monkeypatch):
    """Let saving take all the time, measure the fit on two steps instead of eight, and cut samples off."""
    monkeypatch.setattr(trainer, "SAVING_SHARE", math.inf)
    monkeypatch.setattr(validation, "FIT_STEPS", 2)
    shorter = {"max_extra_length": 1}  # outputs of models that have learnt little hardly end by themselves
    monkeypatch.setattr(validation, "GREEDY", validation.GREEDY.model_copy(update=shorter))


@pytest.fixture
def threads_restored():
    """Let later tests compute with as many threads as before."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def copy_corpus(tmp_path_factory) -> Path:
    return write_copy_corpus(tmp_path_factory.mktemp("copy"), train=600, dev=40)


def write_run(
    folder: Path, corpus: Path, seed: int = 1, architecture: str = "transformer", model: dict | None = None, **training
) -> Path:
    """Write a run folder with a `run.yaml`.

    Args:
        folder: Folder of the run, which does not exist.
        corpus: Folder of the encoded corpus.
        seed: Seed of the run.
        architecture: Name of the model's architecture.
        model: Changed settings of the model.
        training: Changed settings of the training.
    """
    settings = {"max_steps": 12, "warmup_steps": 20, "tokens_per_update": 150, "micro_batch_tokens": 150}
    settings |= {"validate_every": 6, "checkpoint_every": 4}
    if architecture == "weighted_transformer":
        settings |= {"branch_warmup_steps": 10, "branch_freeze_steps": 3}
    model = {"architecture": architecture} | MODELS.get(architecture, {}) | (model or {})
    names = {"paper": "test", "system": "copy", "dataset": "copy", "scale": "test"}
    return write_settings(folder, corpus, model, settings | training, **names, seed=seed)


@pytest.fixture
def new_run(tmp_path, copy_corpus) -> Callable[..., Path]:
    """Make a run folder by name; further arguments are those of `write_run`."""
    return lambda name="run", **settings: write_run(tmp_path / name, copy_corpus, **settings)


@pytest.fixture
def train(new_run) -> Callable[..., Path]:
    """Train a new run to its end; arguments are those of `new_run`."""

    def train(name: str = "run", **settings) -> Path:
        train_run(run := new_run(name, **settings), threads=1)
        return run

    return train


@pytest.fixture
def trainer_of() -> Callable[[Path], Trainer]:
    """Build the trainer of a run, in one process."""

    def build(run: Path) -> Trainer:
        spec, checkpoints = load_run(run / "run.yaml"), Checkpoints(run, run_key(run), keep=20)
        return setup.build_trainer(spec, checkpoints, Group(), torch.device("cpu"), MACHINE, StopRequest(), 300)

    return build


class Learnt(Exception):
    """Raised in place of the rest of a training."""


@pytest.fixture
def assert_learns(monkeypatch) -> Callable[..., None]:
    """Train a run until a validation finds a development loss below so many nats; fail if none does."""

    def learn(train: Callable[..., Path], nats: float, *settings: dict, seed: int, **more) -> None:
        measured = Validation.on_dev

        def on_dev(self: Validation, model: torch.nn.Module) -> Loss:
            if (loss := measured(self, model)).nll_per_token < nats:
                raise Learnt
            return loss

        monkeypatch.setattr(Validation, "on_dev", on_dev)
        with pytest.raises(Learnt):
            train("run", *settings, seed=seed, **more)
            pytest.fail(f"seed {seed}")

    return learn


@pytest.fixture
def train_signalled(monkeypatch) -> Callable[..., int]:
    """Train a run that gets a signal in a step; return its exit code. Other arguments are those of `train_run`."""

    def trained(run: Path, step: int, number: int = signal.SIGTERM, **options) -> int:
        count = Progress.count

        def counted(self, done: int, *rest) -> None:
            count(self, done, *rest)
            if done == step + 1:
                os.kill(os.getpid(), number)

        with monkeypatch.context() as patched, pytest.raises(SystemExit) as stopped:
            patched.setattr(Progress, "count", counted)
            train_run(run, threads=1, **options)
        return stopped.value.code

    return trained


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory, copy_corpus) -> Callable[..., Path]:
    """Train a run of some settings once for all tests, which must not change it."""

    @cache
    def trained(**settings: str | float) -> Path:
        run = write_run(tmp_path_factory.mktemp("trained") / "run", copy_corpus, **settings)
        train_run(run, threads=1)
        return run

    return trained


@pytest.fixture
def finished(trained_once, tmp_path) -> Callable[..., Path]:
    """Copy a finished run of some settings to a folder of this name; all tests share its training."""
    return lambda name, **settings: Path(shutil.copytree(trained_once(**settings), tmp_path / name))


@pytest.fixture
def undisturbed(finished, request) -> Path:
    """A run that was trained to its end, in two micro-batches a step.

    It is of a Weighted Transformer unless the test names its architecture.
    """
    architecture = getattr(request, "param", "weighted_transformer")
    return finished("undisturbed", architecture=architecture, micro_batch_tokens=80)


@pytest.fixture
def disturbed(new_run, undisturbed) -> Path:
    """The same run, not begun."""
    architecture = load_run(undisturbed / "run.yaml").model.architecture
    return new_run("disturbed", architecture=architecture, micro_batch_tokens=80)


@pytest.fixture
def outcome() -> Callable[[Path], dict[str, bytes]]:
    """Reads all files of a run that must not depend on what happened on the way."""
    return lambda run: {
        path.name: path.read_bytes()
        for path in (run / "model.safetensors", run / "done.json", *(run / "checkpoints").glob("*.safetensors"))
    }
