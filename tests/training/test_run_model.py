"""Weights that a run takes from other runs, and those that it leaves to them."""

import pytest
import torch
import yaml
from made_records import parallel_corpus

from pipeline.config import load_run
from pipeline.core.errors import UserError
from pipeline.training.run_model import build_initial_model, build_run_model, load_language_model
from pipeline.training.specification import run_key
from pipeline.training.tensor_file import load_into, tensors_of, write_tensor_file

VOCAB = 12
LM = {"architecture": "language_model", "num_layers": 1, "embedding_width": 4, "hidden_width": 6}
TASK = {"architecture": "speech_attention", "encoder_layers": 2, "encoder_width": 3, "decoder_width": 5}
TASK |= {"pooled_layers": 1, "embedding_width": 4, "attention_width": 4, "location_filters": 2, "location_width": 3}
DEEP = {"kind": "deep", "lm_feature": "state", "output": "affine", "gate": "scalar", "width": 4}
COLD = {"kind": "cold", "width": 4}


@pytest.fixture
def make(tmp_path):
    """Writes run folders; `finish` gives one its final weights and returns the model that has them."""

    class Runs:
        def corpus(self, name: str = "corpus", vocabulary: str = "alphabet") -> str:
            folder = tmp_path / name
            parallel_corpus(VOCAB, vocabulary, digest=name).write(folder / "corpus.json")
            return str(folder)

        def run(self, name: str, model: dict, corpus: str | None = None, trained_part: str = "all", **changes):
            training = {"max_steps": 1, "warmup_steps": 1, "sentences_per_update": 2, "validate_every": 1}
            training |= {"checkpoint_every": 1, "trained_part": trained_part}
            spec = dict.fromkeys(("paper", "system", "dataset", "scale"), name) | {"seed": 1}
            spec |= {"corpus": corpus or self.corpus(), "model": model, "training": training} | changes
            folder = tmp_path / name
            folder.mkdir()
            (folder / "run.yaml").write_text(yaml.safe_dump(spec))
            return folder

        def finish(self, folder):
            model = build_initial_model(load_run(folder / "run.yaml"))
            facts = {"key": run_key(folder), "step": 1}
            write_tensor_file(folder / "model.safetensors", tensors_of(model), facts)
            return model

    return Runs()


def lm_of(folder) -> dict:
    return {"language_model": {"run": str(folder), "model": LM}}


def equal(part: torch.nn.Module, other: torch.nn.Module, but: str = "-") -> bool:
    ours, theirs = part.state_dict(), other.state_dict()
    return all(value.equal(theirs[name]) for name, value in ours.items() if not name.startswith(but))


def test_cold_fusion_loads_its_lm_and_does_not_store_it(make):
    lm = make.run("lm", LM)
    trained = make.finish(lm)
    model = build_initial_model(load_run(make.run("CF4", TASK, fusion=COLD, **lm_of(lm)) / "run.yaml"))
    assert equal(model.language_model, trained)
    stored = tensors_of(model)
    assert stored and not any(name.startswith("language_model") for name in stored)
    with torch.no_grad():
        changed = {name: value + 1 for name, value in stored.items()}
    load_into(model, changed)
    assert equal(model.language_model, trained)
    assert all(value.equal(changed[name]) for name, value in tensors_of(model).items())


def test_deep_fusion_loads_its_recogniser_and_stores_only_fusion(make):
    lm, am = make.run("lm", LM), make.run("attention", TASK)
    make.finish(lm)
    recogniser = make.finish(am)
    model = build_initial_model(load_run(make.run("DF0", TASK, fusion=DEEP, initial=str(am), **lm_of(lm)) / "run.yaml"))
    assert equal(model.task, recogniser)
    assert {name.split(".")[0] for name in tensors_of(model)} == {"fusion"}


def test_deep_fusion_warm_start_equals_the_recogniser(make):
    lm, am = make.run("lm", LM), make.run("attention", TASK)
    make.finish(lm)
    recogniser = make.finish(am)
    warm = DEEP | {"output_start": "initial"}
    model = build_initial_model(load_run(make.run("DF0", TASK, fusion=warm, initial=str(am), **lm_of(lm)) / "run.yaml"))
    states, lm_states = torch.randn(3, 5), torch.randn(3, 6)
    torch.testing.assert_close(model.fusion(states, lm_states, torch.randn(3, VOCAB)), recogniser.logits(states))


def test_a_warm_start_needs_an_output_layer_to_begin_with(make):
    lm = make.run("lm", LM)
    tied = {"architecture": "transformer", "num_layers": 1, "d_model": 8, "d_ff": 8, "num_heads": 2}
    am = make.run("transformer", tied)
    make.finish(lm), make.finish(am)
    warm = make.run("DF0", tied, fusion=DEEP | {"output_start": "initial"}, initial=str(am), **lm_of(lm))
    with pytest.raises(UserError, match=r"has no affine output layer; set fusion.output_start: random"):
        build_initial_model(load_run(warm / "run.yaml"))


def test_fine_tuning_loads_all_of_cold_fusion_and_can_be_chained(make):
    lm = make.run("lm", LM)
    make.finish(lm)
    cold = make.run("CF4", TASK, fusion=COLD, **lm_of(lm))
    whole = make.finish(cold)
    tuned = make.run("tuned", TASK, trained_part="fusion", fusion=COLD, initial=str(cold), **lm_of(lm))
    model = build_initial_model(load_run(tuned / "run.yaml"))
    assert equal(model, whole) and {name.split(".")[0] for name in tensors_of(model)} == {"fusion"}
    model.fusion.output.bias.data.add_(1)
    write_tensor_file(tuned / "model.safetensors", tensors_of(model), {"key": run_key(tuned), "step": 1})
    again = make.run("again", TASK, trained_part="fusion", fusion=COLD, initial=str(tuned), **lm_of(lm))
    assert equal(build_initial_model(load_run(again / "run.yaml")), model)


def test_a_missing_part_is_named(make):
    lm = make.run("lm", LM)
    cold = make.run("CF4", TASK, fusion=COLD, **lm_of(lm))
    with pytest.raises(UserError, match=r"lm/model.safetensors: no such weights; train that run first"):
        build_initial_model(load_run(cold / "run.yaml"))


def test_weights_of_other_settings_are_refused(make):
    lm = make.run("lm", LM)
    make.finish(lm)
    spec = yaml.safe_load((lm / "run.yaml").read_text())
    (lm / "run.yaml").write_text(yaml.safe_dump(spec | {"seed": 2}))
    cold = make.run("CF4", TASK, fusion=COLD, **lm_of(lm))
    with pytest.raises(UserError, match="belongs to another run"):
        build_initial_model(load_run(cold / "run.yaml"))


def test_a_language_model_of_another_vocabulary_is_refused(make):
    lm = make.run("lm", LM, make.corpus("subwords", "other"))
    make.finish(lm)
    cold = make.run("CF4", TASK, fusion=COLD, **lm_of(lm))
    with pytest.raises(UserError, match="another vocabulary"):
        build_initial_model(load_run(cold / "run.yaml"))


def test_a_start_of_other_sizes_is_refused(make):
    lm, am = make.run("lm", LM), make.run("attention", TASK | {"decoder_width": 7})
    make.finish(lm), make.finish(am)
    deep = make.run("DF0", TASK, fusion=DEEP, initial=str(am), **lm_of(lm))
    with pytest.raises(UserError, match="does not fit this model"):
        build_initial_model(load_run(deep / "run.yaml"))


def test_external_lm_loads_for_a_run_and_refuses_other_models(make):
    lm, am = make.run("lm", LM), make.run("attention", TASK)
    trained = make.finish(lm)
    assert equal(load_language_model(lm, load_run(am / "run.yaml")), trained)
    make.finish(am)
    with pytest.raises(UserError, match="not a language model"):
        load_language_model(am, load_run(am / "run.yaml"))


def test_a_run_without_fusion_has_no_other_parts(make):
    spec = load_run(make.run("attention", TASK) / "run.yaml")
    torch.manual_seed(3)
    model = build_initial_model(spec)
    torch.manual_seed(3)
    assert equal(model, build_run_model(spec, (VOCAB, VOCAB)))


def test_settings_that_do_not_go_together_are_refused(make):
    lm = make.run("lm", LM)
    for name, message, changes in (
        ("a", "fusion and language_model go together", {"fusion": COLD}),
        ("b", "name its run as `initial`", {"fusion": DEEP, **lm_of(lm)}),
        ("c", "an `initial` run that has the same fusion", {"trained_part": "fusion"}),
    ):
        with pytest.raises(UserError, match=message):
            load_run(make.run(name, TASK, **changes) / "run.yaml")
