import math
import random

import pytest

from pipeline.config import TrainingConfig
from pipeline.models.weighted_transformer.settings import WeightedTransformerConfig
from pipeline.training.optimiser import Schedule


def schedule(d_model: int, num_layers: int, **training) -> Schedule:
    shape = {"num_layers": num_layers, "d_model": d_model, "d_ff": 8, "num_heads": 1, "d_k": 1, "d_v": 1}
    model = WeightedTransformerConfig(architecture="weighted_transformer", **shape)
    required = {"max_steps": 60000, "tokens_per_update": 1, "validate_every": 1, "checkpoint_every": 1}
    return Schedule(model, TrainingConfig(**(required | {"warmup_steps": 4000} | training)))


def test_the_rate_is_equation_3_of_attention_is_all_you_need():
    d_model, warmup_steps, step_num = random.randint(1, 2000), random.randint(1, 9000), random.randint(1, 50000)
    rate = schedule(d_model, 1, warmup_steps=warmup_steps).weights(step_num - 1)
    assert rate == pytest.approx(d_model**-0.5 * min(step_num**-0.5, step_num * warmup_steps**-1.5), rel=1e-12)


def test_base_learning_rate_peaks_at_the_end_of_warm_up():
    base = schedule(512, 6)
    assert base.weights(3999) == pytest.approx(6.99e-4, rel=1e-3)
    assert base.weights(3998) < base.weights(3999) > base.weights(4000)


@pytest.mark.parametrize(
    ("d_model", "num_layers", "peak"), [(512, 2, 3.13e-3), (512, 6, 5.41e-3), (512, 8, 6.25e-3), (1024, 6, 3.83e-3)]
)
def test_kappa_and_alpha_have_the_printed_peaks_at_update_400(d_model, num_layers, peak):
    printed = schedule(d_model, num_layers, branch_warmup_steps=400)
    assert printed.branch_weights(399) == pytest.approx(peak, rel=2e-3)
    assert printed.branch_weights(398) < printed.branch_weights(399) > printed.branch_weights(400)


def test_each_learning_rate_has_its_own_factor():
    plain = schedule(512, 6, branch_warmup_steps=400)
    other = schedule(512, 6, branch_warmup_steps=400, lr_factor=2, branch_lr_factor=0.5)
    assert other.weights(77) == 2 * plain.weights(77)
    assert other.branch_weights(77) == 0.5 * plain.branch_weights(77)


def test_branch_weights_are_frozen_in_exactly_the_last_updates():
    frozen = [schedule(8, 1, max_steps=30, branch_freeze_steps=7).frozen(update) for update in range(30)]
    assert frozen == [False] * 23 + [True] * 7
    assert not any(schedule(8, 1, max_steps=30).frozen(update) for update in range(30))


def plateau(**training) -> Schedule:
    return schedule(8, 1, schedule="plateau", lr=0.25, **training)


def rates(found: Schedule, losses: list[float]) -> list[float]:
    """The rate after each validation."""
    annealings, best, seen = 0, float("inf"), []
    for loss in losses:
        annealings = found.annealings(annealings, loss < best)
        best = min(best, loss)
        seen.append(found.weights(random.randint(0, 10**6), annealings))
    return seen


def test_a_constant_rate_is_constant():
    constant = schedule(8, 1, schedule="constant", lr=0.1)
    assert {constant.weights(random.randint(0, 10**6)) for _ in range(9)} == {0.1}
    assert rates(constant, [3.0, 4.0, 5.0]) == [0.1] * 3 and not constant.finished(0)


def test_slow_plateau_lowers_the_rate_when_there_is_no_new_best():
    expected = [0.25, 0.25, 0.125, 0.0625, 0.0625]
    assert rates(plateau(plateau_factor=0.5), [3.0, 2.0, 2.5, 2.0, 1.9]) == pytest.approx(expected)


def test_fast_plateau_lowers_the_rate_always_after_the_first():
    found = plateau(plateau_factor=0.1, plateau_annealing="fast")
    assert rates(found, [3.0, 2.0, 2.5, 1.5, 1.4]) == pytest.approx([0.25, 0.25, 0.025, 0.0025, 0.00025])


def test_cosine_schedule_warms_up_then_decays_to_zero_after_end():
    found = schedule(8, 1, schedule="cosine", lr=0.2, warmup_steps=4, max_steps=11)
    rising, falling = [0.05, 0.1, 0.15, 0.2], [0.1 * (1 + math.cos(math.pi * n / 8)) for n in range(1, 8)]
    assert [found.weights(update) for update in range(11)] == pytest.approx(rising + falling)
    assert 0 < found.weights(10) < 0.01 and found.weights(7) == pytest.approx(0.1)


def test_a_plateau_ends_the_training_below_its_lowest_rate():
    """Convolutional Sequence to Sequence Learning, section 4.2: by ten from 0.25 until below 1e-4."""
    found = plateau(plateau_factor=0.1, min_lr=1e-4)
    assert [found.finished(annealings) for annealings in range(5)] == [False, False, False, False, True]
    assert not plateau(plateau_factor=0.1).finished(99)


@pytest.mark.parametrize(
    ("faulty", "told"),
    [
        ({"schedule": "plateau"}, "plateau needs lr"),
        ({"schedule": "constant"}, "constant needs lr"),
        ({"warmup_steps": None}, "inverse_sqrt needs warmup_steps"),
        ({"sentences_per_update": 3}, "exactly one"),
        ({"tokens_per_update": None}, "exactly one"),
    ],
)
def test_a_schedule_without_what_it_needs_is_refused(faulty, told):
    with pytest.raises(ValueError, match=told):
        schedule(8, 1, **faulty)
