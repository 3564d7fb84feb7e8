"""Log lines and checks of a training before it begins."""

from types import SimpleNamespace as Some

import pytest
from made_records import MACHINE

from pipeline.config import load_run
from pipeline.core.errors import UserError
from pipeline.models.architectures import build_model
from pipeline.training.setup import log_setup


class Batches:
    padding, left_out, sequences, micro_batch_positions = 0.375, 3, 90, 5000

    def __init__(self, micro_batches: int):
        self.micro_batches = micro_batches

    def __len__(self) -> int:
        return 9

    def largest_micro_batches(self) -> list[None]:
        return [None] * self.micro_batches


@pytest.fixture
def said(new_run, caplog):
    """The lines about a training of so many micro-batches and processes."""
    caplog.set_level("INFO")
    spec = load_run(new_run(max_steps=40, tokens_per_update=160) / "run.yaml")

    def say(micro_batches: int = 4, processes: int = 2, step: int = 0) -> str:
        caplog.clear()
        model, group, state = build_model(spec.model, (24, 24)), Some(size=processes), Some(step=step)
        log_setup(spec, model, Batches(micro_batches), group, MACHINE, state)
        return "\n".join(caplog.messages)

    return say


def test_setup_log_describes_run_steps_machine_and_start(said, monkeypatch):
    text = said()
    assert "test/copy seed 1 on copy at scale test" in text
    assert "40 steps of 160 tokens per side (10 pairs), 9 per epoch; padding 37.5 %; 3 pairs over" in text
    assert "fp32 on toy processor, 1 thread, 2 processes" in text and text.endswith("from the start")
    assert said(step=7).endswith("resumed after step 7")
    monkeypatch.setattr("pipeline.models.settings.ModelSettings.reads", "speech")
    text = said(micro_batches=5)
    assert "(10 utterances)" in text and "padding 37.5 %; 3 utterances left out" in text
    assert "lower training.micro_batch_frames (now 5000)" in text


@pytest.mark.parametrize(("micro_batches", "processes", "warned"), [(4, 2, False), (5, 2, True), (3, 1, False)])
def test_unevenly_shared_micro_batches_give_a_warning(said, micro_batches, processes, warned):
    message = f"about {micro_batches} micro-batches per step cannot be shared equally by {processes} processes"
    text = said(micro_batches, processes)
    assert (message in text) is ("lower training.micro_batch_tokens (now 5000)" in text) is warned


def test_too_long_dev_pairs_are_refused_before_the_first_step(train):
    """`max_length` leaves out training pairs alone; the development set has pairs of up to 9 symbols, EOS included."""
    learned = {"positions": "learned", "max_positions": 6}
    with pytest.raises(UserError, match=r"split dev: \d+ of 40 .* 6 positions .*longest: [789]\); shorten or remove"):
        train("run", model=learned, max_length=5, validate_every=100)
    train("fits", model=learned | {"max_positions": 9}, max_length=5, max_steps=1)


@pytest.mark.parametrize(("key", "value"), [("sorted_first_epoch", True), ("noise_probability", 0.4)])
def test_speech_settings_are_refused_for_text_models(new_run, key, value):
    with pytest.raises(UserError, match=rf"training\.{key} is for speech: this model reads parallel"):
        load_run(new_run("run", **{key: value}) / "run.yaml")
