"""Recognisers, fusions and language models learn in the trainer, and resume after a stop."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from forked_ranks import fork_ranks
from made_records import speech_corpus
from run_folders import write_settings

from pipeline.core.errors import UserError
from pipeline.core.json_csv import read_json
from pipeline.data.encoded_files import NOISE_STEM
from pipeline.data.sequence_store import write_frames, write_tokens
from pipeline.data.text.vocabulary import FIRST, Alphabet
from pipeline.models.ctc.model import CTC as CTCModel
from pipeline.training import machine
from pipeline.training.job import train_run
from pipeline.training.tensor_file import read_tensor_file

LM = {"architecture": "language_model", "num_layers": 1, "embedding_width": 8, "hidden_width": 12}
RECOGNISER = {"architecture": "speech_attention", "encoder_layers": 2, "encoder_width": 12, "decoder_width": 16}
RECOGNISER |= {"pooled_layers": 1, "embedding_width": 8, "attention_width": 16, "location_filters": 4}
RECOGNISER |= {"location_width": 5}
CTC = {"architecture": "ctc", "channels": 2, "num_layers": 1, "hidden_width": 12}
COLD = {"kind": "cold", "width": 8}
DEEP = {"kind": "deep", "lm_feature": "state", "gate_reads": "lm", "gate": "scalar", "output": "affine"}


def write_spoken(folder: Path, hurried: str = "") -> Path:
    """Texts of six characters, each of which sounds for four frames as it always does, with noise.

    hurried: a split to which two utterances of six frames are added, "abc" and "aab".
    """
    rng = np.random.default_rng(3)
    folder.mkdir()
    sounds = rng.normal(0, 3, (6, 40))
    for split, utterances in (("train", 200), ("dev", 16)):
        with write_frames(folder / split) as frames, write_tokens(folder / f"{split}.tgt", len(Alphabet())) as tokens:
            for _ in range(utterances):
                text = rng.integers(0, 6, rng.integers(2, 6))
                frames.append(np.repeat(sounds[text], 4, axis=0) + rng.normal(0, 0.3, (4 * len(text), 40)))
                tokens.append(text + FIRST, [len(text)])
            for text in ([0, 1, 2], [0, 0, 1]) if split == hurried else ():
                frames.append(np.repeat(sounds[text], 2, axis=0))
                tokens.append(np.array(text) + FIRST, [len(text)])
    with write_frames(folder / NOISE_STEM) as noises:
        noises.append(rng.normal(-8, 0.1, (50, 40)))
    speech_corpus(0.0, 3.0, digest="spoken").write(folder / "corpus.json")
    return folder


@pytest.fixture(scope="session")
def spoken_corpus(tmp_path_factory) -> Path:
    return write_spoken(tmp_path_factory.mktemp("spoken") / "encoded")


@pytest.fixture
def make(tmp_path, spoken_corpus) -> Callable[..., Path]:
    """Makes a run folder; `training` changes its settings."""

    def run(name: str, model: dict, training: dict, corpus: Path = spoken_corpus, **parts) -> Path:
        settings = {"max_steps": 8, "schedule": "plateau", "lr": 0.01, "sentences_per_update": 20, "clip_norm": 1.0}
        settings |= {"label_smoothing": 0.0, "validate_every": 4, "checkpoint_every": 4, "adam_beta2": 0.999}
        settings |= {"warmup_steps": None} | training
        return write_settings(tmp_path / name, corpus, model, settings, **parts)

    return run


@pytest.fixture
def train(make) -> Callable[..., Path]:
    """Trains a run that `make` makes."""

    def trained(*settings, **parts) -> Path:
        train_run(run := make(*settings, **parts), threads=1)
        return run

    return trained


SAMPLED = {"scheduled_sampling": 0.2, "sorted_first_epoch": True, "noise_probability": 0.4}


def fused(lm: Path, **fusion) -> dict:
    return {"fusion": fusion, "language_model": {"run": str(lm), "model": LM}}


@pytest.mark.parametrize("kind", ["fusion", "ctc"])
def test_a_training_stopped_at_any_update_ends_in_the_same_bytes(kind, make, train, train_signalled):
    """CTC keeps statistics of its batches; the learner of a fusion, a language model of another run's."""
    if kind == "ctc":
        settings, parts = (CTC, {}), {}
    else:
        settings, parts = (RECOGNISER, SAMPLED), fused(train("lm", LM, {"max_steps": 2}), **COLD)
    whole, stopped = train("whole", *settings, **parts), make("stopped", *settings, **parts)
    (stopped / "run.yaml").write_text((whole / "run.yaml").read_text())
    # During the last of 8 updates, number 7, it is too late to stop.
    train_signalled(stopped, step=int(np.random.default_rng().integers(1, 7)))
    train_run(stopped, threads=1)
    for name in ("model.safetensors", "done.json"):
        assert (stopped / name).read_bytes() == (whole / name).read_bytes()


def test_memory_error_of_a_recogniser_names_frames(make, monkeypatch):
    run = make("large", CTC, {"micro_batch_frames": 5000})
    monkeypatch.setattr(CTCModel, "loss", Mock(side_effect=MemoryError))
    with pytest.raises(UserError, match=r"out of memory in step 0 with the smallest .*max_frames \(now 3000\)"):
        train_run(run, threads=1)


def test_weights_from_other_runs_are_neither_changed_nor_stored(train):
    sampled = SAMPLED | {"max_steps": 2}
    lm, am = train("lm", LM, {"max_steps": 2}), train("am", RECOGNISER, sampled)
    before = [(run / "model.safetensors").read_bytes() for run in (lm, am)]
    deep = train("deep", RECOGNISER, sampled, initial=str(am), **fused(lm, **DEEP))
    cold = train("cold", RECOGNISER, sampled, **fused(lm, **COLD))
    fusion_alone = {"trained_part": "fusion", "max_steps": 2}
    tuned = train("tuned", RECOGNISER, fusion_alone, initial=str(cold), **fused(lm, **COLD))
    assert [(run / "model.safetensors").read_bytes() for run in (lm, am)] == before
    for run, parts in ((deep, {"fusion"}), (cold, {"fusion", "task"}), (tuned, {"fusion"})):
        assert {name.split(".")[0] for name in read_tensor_file(run / "model.safetensors")[0]} == parts
    assert read_json(deep / "done.json")["parameters"]["total"] < read_json(cold / "done.json")["parameters"]["total"]


def test_ctc_skips_and_counts_utterances_with_too_few_frames(train, tmp_path, caplog):
    """Three output frames hold "abc", but not "aab", which needs a blank between its a's."""
    in_train, in_dev = (write_spoken(tmp_path / f"in {split}", hurried=split) for split in ("train", "dev"))
    with caplog.at_level("WARNING"):
        ctc = train("ctc", CTC, {"max_steps": 1}, corpus=in_train)
    assert read_json(ctc / "done.json")["left_out_pairs"] == 1
    assert "left out 1 utterance whose transcript has more characters than ctc has output frames" in caplog.text
    message = r"split dev: 1 utterance can't be scored; the first is utterance 18: its 3 char"
    with pytest.raises(UserError, match=message):
        train("on-dev", CTC, {"max_steps": 1}, corpus=in_dev)
    attention = train("attention", RECOGNISER, {"max_steps": 1}, corpus=in_train)
    assert read_json(attention / "done.json")["left_out_pairs"] == 0


def test_loss_of_ctc_in_training_is_a_mean_over_characters(train, monkeypatch):
    """The loss has no end of sentence, so neither has the number of symbols that divides it."""
    found, loss = [], CTCModel.loss

    def noted(self, batch, smoothing: float):
        sums = loss(self, batch, smoothing)
        if self.training:
            found.append((float(sums.nll), sums.tokens))
        return sums

    monkeypatch.setattr(CTCModel, "loss", noted)
    done = read_json(train("ctc", CTC, {"max_steps": 4}) / "done.json")
    nll, tokens = np.array(found[-4:]).sum(axis=0)
    assert done["train"]["nll_per_token"] == pytest.approx(nll / tokens)


def test_skipped_step_of_ctc_leaves_no_trace_in_validations(train, monkeypatch):
    """A statistic that is not a number would stay so, and every later development loss with it."""
    loss, steps = CTCModel.loss, []

    def faulty(self, batch, smoothing: float):
        steps.append(self.training)
        if sum(steps) == 6:
            batch.frames[0, 0] = np.inf
        return loss(self, batch, smoothing)

    monkeypatch.setattr(CTCModel, "loss", faulty)
    done = read_json(train("ctc", CTC, {}) / "done.json")
    assert done["skipped_updates"] == 1 and not done["returned"]


@pytest.mark.slow
def test_two_processes_validate_the_running_statistics_they_keep(make, trainer_of):
    run = make("ctc", CTC, {"micro_batch_frames": 120})
    children = fork_ranks(2, lambda rank: train_run(run, device="cpu", threads=1))
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    alone = trainer_of(run)
    expected = alone.validation.on_dev(alone.model)
    assert read_json(run / "done.json")["dev"]["nll_per_token"] == pytest.approx(expected.nll_per_token, rel=1e-6)


@pytest.mark.parametrize(("model", "strict"), [(CTC, False), (LM, True)], ids=["speech", "text"])
def test_only_speech_may_use_sums_without_a_fixed_order(make, monkeypatch, model, strict):
    asked = []
    monkeypatch.setattr(machine, "prepare", lambda device, threads, strict: asked.append(strict) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        train_run(make("run", model, {}), threads=1)
    assert asked == [strict]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "nats"), [(RECOGNISER, 1.0), (CTC, 0.9), (LM, 1.9)], ids=["attention", "ctc", "lm"])
def test_every_kind_of_model_learns_on_any_seed(train, assert_learns, model, nats):
    """Draw six sounds of equal chance, which only recognisers hear.

    A language model can reach log 7 = 1.95 nats minus the information in lengths.
    """
    steps = {"max_steps": 160, "validate_every": 20, "checkpoint_every": 80, "sorted_first_epoch": model is not LM}
    assert_learns(train, nats, model, steps, seed=random.randrange(1 << 20))
