"""Settings that another setting makes meaningless are refused."""

import pytest
import yaml
from real_project import real_project

from pipeline.config import TrainingConfig
from pipeline.config.run import load_run
from pipeline.core.errors import UserError
from reprise.opening import change_decoding

ONLY_IF = "has an effect only if"
BRANCHES = {"base": "weighted/C", "description": "branches and a language model", "fusion": {"kind": "cold"}}
BRANCHES |= {"language_model": "lm-full@full-text"}
CHOSEN = {"language_model": "coldfusion/lm-target@target-text", "lm_weights": [0.1, 0.2]}
TRAINING, FINAL = ("attention", "systems|base|training"), ("coldfusion", "decodings|final")
WITHOUT_EFFECT = [
    (*TRAINING, {"lr": 0.0003}, f"base: training: lr: {ONLY_IF} schedule is constant"),
    (*TRAINING, {"schedule": "constant", "lr": 3e-4}, rf"warmup_steps: {ONLY_IF} .*, not constant, got 4000; .*null`"),
    (*TRAINING, {"momentum": 0.9}, f"momentum: {ONLY_IF} optimiser is nag, not adam"),
    (*TRAINING, {"train_share": 0.1}, "train_share is for speech and text"),
    (*TRAINING, {"scheduled_sampling": 0.2}, "transformer is always fed the reference"),
    (*FINAL, {"length_penalty": 1.0}, f"length_penalty: {ONLY_IF} length_normalisation is gnmt or length, not none"),
    (*FINAL, {"language_model": "lm-target@target-text"}, "decodings.final: its language model has weight 0"),
    (*FINAL, {"ngram_order": 3, "word_bonus": 1.5, "lm_weights": [0.1]}, "word_bonus must be 0 if lm_weights is set"),
    ("multichannel", "decodings|beam10", CHOSEN, "decodings.beam10: lm_weights are for speech; set lm_weight"),
    (
        "coldfusion",
        "systems",
        {"mine": BRANCHES},
        "weighted_transformer is not trained by the loss of its decoder alone",
    ),
    ("coldfusion", "systems|CF1", {"language_model": None}, "fusion needs a language model: set language_model"),
]
"""Paper, place in its file, what is set there, and the message."""


@pytest.mark.parametrize(("paper", "place", "settings", "message"), WITHOUT_EFFECT)
def test_paper_settings_without_effect_are_named(edited, paper, place, settings, message):
    for key, value in settings.items():
        edited.put(f"workflow/papers/{paper}/paper.yaml", f"{place}|{key}", value)
    with pytest.raises(UserError, match=message):
        edited.load(scale="demo").check()


def test_rules_for_a_published_recipe_are_refused(edited):
    rules = {"training": {"max_steps": {"divide": 10}}}
    edited.put("workflow/scales/small.yaml", "systems|anchors/tiny-transformer", rules)
    with pytest.raises(UserError, match="tiny-transformer: is trained as published; remove its rules"):
        edited.load(scale="small")


NOISY = {"schedule": "constant", "lr": 1e-4, "noise_probability": 0.4, "noise_snr_db": [15, 0]}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"schedule": "plateau", "lr": 1e-4, "min_lr": 1e-3}, r"min_lr 0\.001 is above lr 0\.0001"),
        (NOISY, r"write the lowest ratio first, got 15\.0, 0\.0"),
    ],
)
def test_bounds_the_wrong_way_round_are_refused(settings, message):
    usual = {"max_steps": 9, "tokens_per_update": 64, "validate_every": 9, "checkpoint_every": 9}
    with pytest.raises(ValueError, match=message):
        TrainingConfig(**usual, **settings)


def test_old_run_with_ignored_settings_can_be_read(tmp_path):
    project = real_project({"scale": "smoke"})
    settings = project.run_yaml(project.runs_of("attention", "base", "wmt14-en-de")[0])
    settings["training"] |= {"scheduled_sampling": 0.2, "train_share": 0.5, "noise_snr_db": [15.0, 0.0]}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(settings))
    assert load_run(tmp_path / "run.yaml").training.train_share == 0.5


def test_decoding_is_refused_for_changed_settings_only():
    final = real_project().decoding("coldfusion", "attention-source", "final")
    scaled = final.model_copy(update={"length_penalty": 1.0})
    assert change_decoding(scaled, {}) == scaled
    assert change_decoding(scaled, {"beam": "3"}).beam_size == 3
    with pytest.raises(UserError, match="--decoding: length_penalty: has an effect only if length_normalisation"):
        change_decoding(scaled, {"alpha": "0.9"})
