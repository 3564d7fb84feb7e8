"""Weights that a run takes from other runs, and those that it leaves to them."""

from pathlib import Path

import pytest
import torch
from made_records import parallel_corpus
from run_folders import change_settings, write_settings, write_weights

from pipeline.config import load_run
from pipeline.core.errors import UserError
from pipeline.training.run_model import build_initial_model, load_language_model
from pipeline.training.tensor_file import load_into, tensors_of

VOCAB = 12
LM = {"architecture": "language_model", "num_layers": 1, "embedding_width": 4, "hidden_width": 6}
TASK = {"architecture": "speech_attention", "encoder_layers": 2, "encoder_width": 3, "decoder_width": 5}
TASK |= {"pooled_layers": 1, "embedding_width": 4, "attention_width": 4, "location_filters": 2, "location_width": 3}
DEEP = {"kind": "deep", "lm_feature": "state", "output": "affine", "gate": "scalar", "width": 4}
COLD = {"kind": "cold", "width": 4}


def initial_model(run: Path) -> torch.nn.Module:
    return build_initial_model(load_run(run / "run.yaml"))


class Runs:
    """Writes run folders, in which runs are named as their folders."""

    def __init__(self, root: Path):
        self.root = root

    def run(self, name: str, model: dict = TASK, trained_part: str = "all", words: str = "alphabet", **changes) -> Path:
        corpus = self.root / f"corpus of {words}"
        parallel_corpus(VOCAB, words, digest=words).write(corpus / "corpus.json")
        if "initial" in changes:
            changes["initial"] = str(self.root / changes["initial"])
        training = {"sentences_per_update": 2, "trained_part": trained_part}
        return write_settings(self.root / name, corpus, model, training, **changes)

    def fused(self, name: str, model: dict = TASK, fusion: dict = COLD, **changes) -> Path:
        """Write a run that is fused with the run `lm`."""
        lm = {"run": str(self.root / "lm"), "model": LM}
        return self.run(name, model, fusion=fusion, language_model=lm, **changes)

    def finish(self, run: Path) -> torch.nn.Module:
        """Give a run final weights, and return the model that has them."""
        write_weights(run, model := initial_model(run))
        return model


@pytest.fixture
def make(tmp_path) -> Runs:
    return Runs(tmp_path)


@pytest.fixture
def lm(make) -> torch.nn.Module:
    """The model of the finished run `lm`."""
    return make.finish(make.run("lm", LM))


def assert_equal(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def parts(model: torch.nn.Module) -> set[str]:
    """Return the parts that a run of this model stores."""
    return {name.split(".")[0] for name in tensors_of(model)}


def test_cold_fusion_loads_its_lm_and_does_not_store_it(make, lm):
    model = initial_model(make.fused("CF4"))
    assert_equal(model.language_model.state_dict(), lm.state_dict())
    assert parts(model) == {"fusion", "task"}
    changed = {name: value.detach() + 1 for name, value in tensors_of(model).items()}
    load_into(model, changed)
    assert_equal(model.language_model.state_dict(), lm.state_dict())
    assert_equal({name: value.detach() for name, value in tensors_of(model).items()}, changed)


def test_deep_fusion_loads_its_recogniser_and_stores_only_fusion(make, lm):
    recogniser = make.finish(make.run("attention"))
    model = initial_model(make.fused("DF0", fusion=DEEP, initial="attention"))
    assert_equal(recogniser.state_dict() | model.task.state_dict(), recogniser.state_dict())  # but for its output layer
    assert parts(model) == {"fusion"}


def test_deep_fusion_warm_start_equals_the_recogniser(make, lm):
    recogniser = make.finish(make.run("attention"))
    model = initial_model(make.fused("DF0", fusion=DEEP | {"output_start": "initial"}, initial="attention"))
    states, lm_states = torch.randn(3, 5), torch.randn(3, 6)
    torch.testing.assert_close(model.fusion(states, lm_states, torch.randn(3, VOCAB)), recogniser.logits(states))


def test_a_warm_start_needs_an_output_layer_to_begin_with(make, lm):
    tied = {"architecture": "transformer", "num_layers": 1, "d_model": 8, "d_ff": 8, "num_heads": 2}
    make.finish(make.run("transformer", tied))
    warm = make.fused("DF0", tied, DEEP | {"output_start": "initial"}, initial="transformer")
    with pytest.raises(UserError, match=r"has no affine output layer; set fusion.output_start: random"):
        initial_model(warm)


def test_fine_tuning_loads_all_of_cold_fusion_and_can_be_chained(make, lm):
    whole = make.finish(make.fused("CF4"))
    tuned = make.fused("tuned", trained_part="fusion", initial="CF4")
    model = initial_model(tuned)
    assert_equal(model.state_dict(), whole.state_dict())
    assert parts(model) == {"fusion"}
    model.fusion.output.bias.data.add_(1)
    write_weights(tuned, model)
    again = initial_model(make.fused("again", trained_part="fusion", initial="tuned"))
    assert_equal(again.state_dict(), model.state_dict())


def test_a_missing_part_is_named(make):
    make.run("lm", LM)
    with pytest.raises(UserError, match=r"lm/model.safetensors: no such weights; train that run first"):
        initial_model(make.fused("CF4"))


def test_weights_of_other_settings_are_refused(make, lm):
    change_settings(make.root / "lm", seed=2)
    with pytest.raises(UserError, match="belongs to another run"):
        initial_model(make.fused("CF4"))


def test_a_language_model_of_another_vocabulary_is_refused(make):
    make.finish(make.run("lm", LM, words="other"))
    with pytest.raises(UserError, match="another vocabulary"):
        initial_model(make.fused("CF4"))


def test_a_start_of_other_sizes_is_refused(make, lm):
    make.finish(make.run("attention", TASK | {"decoder_width": 7}))
    with pytest.raises(UserError, match="does not fit this model"):
        initial_model(make.fused("DF0", fusion=DEEP, initial="attention"))


def test_external_lm_loads_for_a_run_and_refuses_other_models(make, lm):
    am = make.run("attention")
    spec = load_run(am / "run.yaml")
    assert_equal(load_language_model(make.root / "lm", spec).state_dict(), lm.state_dict())
    make.finish(am)
    with pytest.raises(UserError, match="not a language model"):
        load_language_model(am, spec)


def test_settings_that_do_not_go_together_are_refused(make):
    runs = {
        "fusion and language_model go together": make.run("a", fusion=COLD),
        "name its run as `initial`": make.fused("b", fusion=DEEP),
        "an `initial` run that has the same fusion": make.run("c", trained_part="fusion"),
    }
    for message, run in runs.items():
        with pytest.raises(UserError, match=message):
            load_run(run / "run.yaml")


def test_a_fused_model_has_to_be_a_task_model(make, lm, monkeypatch):
    """An author of an architecture may give its settings the width of a state, and its model none."""
    monkeypatch.setattr("pipeline.training.run_model.build_model", lambda *_: torch.nn.Module())
    with pytest.raises(UserError, match="architecture speech_attention has a `state_width`: derive its model from"):
        initial_model(make.fused("cold"))
