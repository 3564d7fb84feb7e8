"""Settings that another setting makes meaningless are refused."""

import pytest
import yaml
from real_project import real_project

from pipeline.config import DecodingConfig, TrainingConfig
from pipeline.config.run import load_run
from pipeline.core.errors import UserError
from pipeline.models.architectures import architectures
from pipeline.models.settings import ModelSettings
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
    ("attention", "systems|base|model", {"max_positions": 64}, f"max_positions: {ONLY_IF} positions is learned"),
    (
        "coldfusion",
        "systems|CF3|fusion",
        {"logit_scale": 0.05},
        f"logit_scale: {ONLY_IF} lm_feature is logits, not state",
    ),
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


def model_of(architecture: str) -> ModelSettings:
    return architectures()[architecture].model_construct(architecture=architecture)


def test_decoding_is_refused_for_changed_settings_only():
    final, model = real_project().decoding("coldfusion", "attention-source", "final"), model_of("speech_attention")
    scaled = final.model_copy(update={"length_penalty": 1.0})
    assert change_decoding(scaled, {}, model) == scaled
    assert change_decoding(scaled, {"beam": "3"}, model).beam_size == 3
    with pytest.raises(UserError, match="--decoding: length_penalty: has an effect only if length_normalisation"):
        change_decoding(scaled, {"alpha": "0.9"}, model)


@pytest.mark.parametrize(
    ("architecture", "unread", "read"),
    [
        ("ctc", ["alpha=0.9", "max_extra_length=9", "ctc_weight=0.9", "branch_weights=uniform"], "word_bonus=1"),
        ("joint_recogniser", ["length_normalisation=length", "branch_weights_seed=2"], "ctc_weight=0.9"),
        ("speech_attention", ["ctc_weight=0.9", "word_bonus=1"], "max_extra_length=9"),
        ("transformer", ["ctc_weight=0.9", "branch_weights=random"], "alpha=0.9"),
        ("weighted_transformer", ["ctc_weight=0.9"], "branch_weights=uniform"),
    ],
)
def test_setting_that_an_architecture_does_not_read_is_refused(architecture, unread, read):
    model = model_of(architecture)
    key, value = read.split("=")
    assert change_decoding(DecodingConfig(), {key: value}, model) != DecodingConfig()
    for setting in unread:
        key, value = setting.split("=")
        with pytest.raises(UserError, match=f"has no effect on architecture {architecture}; leave it out"):
            change_decoding(DecodingConfig(), {key: value}, model)


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("branch_weights_seed", "2", f"{ONLY_IF} branch_weights is random, not learned"),
        ("word_bonuses", "[1.0]", "needs other weights"),
        ("tuning_sentences", "9", "needs other weights"),
    ],
)
def test_setting_that_decodes_nothing_by_itself_is_refused(key, value, fault):
    with pytest.raises(UserError, match=f"--decoding: {key}: {fault}"):
        change_decoding(DecodingConfig(), {key: value}, model_of("weighted_transformer"))
