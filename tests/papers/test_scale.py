"""Rules of scales for settings, and resources of trainings."""

import pytest
from hypothesis import given, strategies as some

from pipeline.papers.scale import Resources, Rule, Scale, SystemRules

WHOLE, PART = some.integers(1, 10**6), some.floats(1e-6, 1e3)


def scale(**rules) -> Scale:
    made = {"description": "toy", "datasets": {}, "resources": {"train": Resources(gpus=3)}}
    return Scale.model_validate(made | rules)


@given(WHOLE, PART, some.floats(1, 1e4), some.floats(1, 1e4))
def test_scaled_integers_stay_positive_and_within_bounds(value, factor, one, other):
    low, high = sorted((one, other))
    scaled = Rule(multiply=factor, minimum=low, maximum=high).apply(value)
    assert isinstance(scaled, int) and scaled >= 1
    assert low - 0.5 <= scaled <= high + 0.5


@pytest.mark.parametrize(
    ("rule", "value", "expected"),
    [
        *(({"divide": 8}, 512, 64), ({"divide": 8}, None, None), ({"divide": 100}, 0, 0), ({"divide": 1000}, 100, 1)),
        *(({"divide": 3}, 8, 3), ({"multiply": 3}, 7, 21), ({"divide": 4, "minimum": 1}, 2, 1)),
        *(({"divide": 2, "minimum": 5}, 0, 0), ({"multiply": 3}, 0.1, 0.3)),
        *(({"multiply": 3, "maximum": 0.5}, 0.3, 0.5), ({"multiply": 3, "maximum": 0.5}, 0.0, 0.0)),
        *(({"set": 7}, 3, 7), ({"set": 7}, None, None), ({"set": "bf16"}, "fp32", "bf16")),
        *(({"set": False}, True, False), ({"set": 0}, 9, 0)),
    ],
)
def test_rules_scale_numbers_and_keep_their_kind(rule, value, expected):
    scaled = Rule.model_validate(rule).apply(value)
    assert (scaled, type(scaled)) == (expected, type(expected))


def test_rule_of_the_innermost_system_applies():
    made = scale(
        training={"max_steps": {"divide": 10}, "lr": {"multiply": 2}},
        systems={
            "toy/base": {"training": {"max_steps": {"divide": 4}}},
            "toy/arm": {"training": {"max_steps": {"divide": 2}}},
            "toy/other": {"training": {"max_steps": {"set": 1}}},
        },
    )
    settings = {"max_steps": 800, "lr": 0.25, "warmup_steps": 40}
    steps = [
        made.scaled("training", settings, lineage)["max_steps"]
        for lineage in ([], ["toy/base"], ["toy/base", "toy/arm"])
    ]
    assert steps == [80, 200, 400]
    assert made.scaled("training", settings, ["toy/arm"]) == {"max_steps": 400, "lr": 0.5, "warmup_steps": 40}
    assert made.scaled("training", {"lr": 0.25}, []) == {"lr": 0.5}


def test_gpus_are_those_of_the_innermost_system():
    own = {"toy/base": SystemRules(gpus=8), "toy/arm": SystemRules(gpus=2), "toy/silent": SystemRules()}
    lineages = ([], ["elsewhere"], ["base"], ["base", "arm"], ["base", "silent"], ["silent", "elsewhere"])
    found = [scale(systems=own).training_gpus([f"toy/{name}" for name in lineage]) for lineage in lineages]
    assert found == [3, 3, 8, 2, 8, 3]


def test_a_scale_has_what_its_base_says_but_for_keys_of_its_own():
    base = scale(
        datasets={"big": "small", "other": "kept"},
        training={"lr": {"multiply": 2}, "max_steps": {"divide": 10}},
        systems={"toy/arm": {"gpus": 2}, "toy/other": {"gpus": 2, "training": {"lr": {"set": 1.0}}}},
        seeds={"toy/arm": 3},
    )
    own = Scale(description="toy", base="base", datasets={"big": "own"}, training={"max_steps": Rule(set=7)})
    own = own.model_copy(update={"systems": {"toy/other": SystemRules(gpus=1)}})
    both = own.over(base)
    assert (both.description, both.base, both.datasets) == ("toy", "base", {"big": "own", "other": "kept"})
    assert both.scaled("training", {"lr": 1.0, "max_steps": 99}, []) == {"lr": 2.0, "max_steps": 7}
    assert both.training_gpus(["toy/arm"]) == 2 and both.training_gpus([]) == 3 and both.seeds == {"toy/arm": 3}
    assert both.training_gpus(["toy/other"]) == 1 and both.systems["toy/other"].training.keys() == {"lr"}


def test_rules_of_one_system_are_mixed_with_its_bases():
    base = scale(
        systems={"toy/arm": {"gpus": 2, "training": {"max_steps": {"divide": 4}, "lr": {"set": 0.5}}}, "toy/left": {}}
    )
    own = scale(
        systems={"toy/arm": {"model": {"d_ff": {"set": 3}}, "training": {"lr": {"multiply": 1}}}, "toy/new": {}}
    )
    both = own.over(base)
    settings = {"max_steps": 100, "lr": 0.25}
    assert both.scaled("training", settings, ["toy/arm"]) == {"max_steps": 25, "lr": 0.25}
    assert both.scaled("model", {"d_ff": 8}, ["toy/arm"]) == {"d_ff": 3} and both.training_gpus(["toy/arm"]) == 2
    assert both.systems.keys() == {"toy/arm", "toy/left", "toy/new"}
    assert own.systems["toy/arm"].training.keys() == {"lr"}  # unchanged
