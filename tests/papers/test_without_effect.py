"""Settings that another setting makes meaningless are refused."""

import pytest
import yaml
from real_project import real_project

from pipeline.config import TrainingConfig
from pipeline.config.run import load_run
from pipeline.core.errors import UserError
from reprise.opening import change_decoding


def training(**settings):
    return "attention", lambda paper: paper["systems"]["base"]["training"].update(settings)


def decoding(name: str, paper: str = "coldfusion", **settings):
    return paper, lambda record: record["decodings"][name].update(settings)


def systems(change):
    return "coldfusion", lambda paper: change(paper["systems"])


ONLY_IF = "has an effect only if"
FUSED_BRANCHES = {"base": "weighted/C", "description": "branches and a language model", "fusion": {"kind": "cold"}}
FUSED_BRANCHES |= {"language_model": "lm-full@full-text"}
CHOSEN = {"language_model": "coldfusion/lm-target@target-text", "lm_weights": [0.1, 0.2]}
WITHOUT_EFFECT = [
    (training(lr=0.0003), f"base: training: lr: {ONLY_IF} schedule is constant"),
    (
        training(schedule="constant", lr=3e-4),
        rf"warmup_steps: {ONLY_IF} schedule is .*, not constant, got 4000; .*null`",
    ),
    (training(momentum=0.9), f"momentum: {ONLY_IF} optimiser is nag, not adam"),
    (training(train_share=0.1), "train_share is for speech and text"),
    (training(scheduled_sampling=0.2), "transformer is always fed the reference"),
    (
        decoding("final", length_penalty=1.0),
        f"length_penalty: {ONLY_IF} length_normalisation is gnmt or length, not none",
    ),
    (decoding("final", language_model="lm-target@target-text"), "decodings.final: its language model has weight 0"),
    (decoding("final", ngram_order=3, word_bonus=1.5, lm_weights=[0.1]), "word_bonus must be 0 if lm_weights is set"),
    (decoding("beam10", "multichannel", **CHOSEN), "decodings.beam10: lm_weights are for speech; set lm_weight"),
    (
        systems(lambda all: all.update(mine=FUSED_BRANCHES)),
        "weighted_transformer is not trained by the loss of its decoder alone",
    ),
    (systems(lambda all: all["CF1"].pop("language_model")), "fusion needs a language model: set language_model"),
]


@pytest.mark.parametrize(("changed", "message"), WITHOUT_EFFECT)
def test_paper_settings_without_effect_are_named(edited, changed, message):
    paper, change = changed
    edited.edit(f"workflow/papers/{paper}/paper.yaml", change)
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
