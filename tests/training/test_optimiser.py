import copy
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pipeline.config import TrainingConfig
from pipeline.models.architectures import build_model
from pipeline.models.weighted_transformer.settings import WeightedTransformerConfig
from pipeline.training.optimiser import Optimiser, Schedule
from pipeline.training.update_rules import update_rule

CONFIG = WeightedTransformerConfig(
    architecture="weighted_transformer", num_layers=1, d_model=8, d_ff=16, num_heads=2, dropout=0.0
)
TRAINING = TrainingConfig(
    max_steps=10,
    warmup_steps=4,
    tokens_per_update=1,
    validate_every=1,
    checkpoint_every=1,
    branch_warmup_steps=2,
    branch_freeze_steps=3,
)


@pytest.fixture
def optimiser() -> Optimiser:
    model = build_model(CONFIG, (30, 30))
    return Optimiser(model, Schedule(CONFIG, TRAINING), TRAINING)


@pytest.fixture(params=["adam", "adadelta", "nag"])
def any_optimiser(request) -> Optimiser:
    training = TRAINING.model_copy(update={"optimiser": request.param})
    return Optimiser(build_model(CONFIG, (30, 30)), Schedule(CONFIG, training), training)


def update(optimiser: Optimiser, number: int) -> None:
    for parameter in optimiser.parameters:
        parameter.grad = torch.randn_like(parameter)
    optimiser.step(number)


def copies(parameters) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in parameters]


def test_an_update_is_adam_written_out_with_the_scheduled_rate(optimiser):
    weight = optimiser.parameters[0]
    before, gradient = weight.detach().clone(), torch.randn_like(weight)
    weight.grad = gradient.clone()
    optimiser.step(0)
    mean, variance = 0.1 * gradient, 0.02 * gradient**2
    step = mean / (1 - 0.9) / ((variance / (1 - 0.98)).sqrt() + 1e-9)
    rate = 8**-0.5 * 4**-1.5
    torch.testing.assert_close(weight.detach(), before - rate * step, rtol=1e-5, atol=1e-6)


def three_updates(optimiser: str, **settings) -> tuple[torch.Tensor, list[torch.Tensor], torch.Tensor]:
    """A weight before, its gradients in three updates at a rate of 0.3, and the weight after."""
    training = TRAINING.model_copy(update={"optimiser": optimiser, "schedule": "constant", "lr": 0.3, **settings})
    found = Optimiser(build_model(CONFIG, (30, 30)), Schedule(CONFIG, training), training)
    weight = found.parameters[0]
    before, gradients = weight.detach().clone(), [torch.randn_like(weight) for _ in range(3)]
    for number, gradient in enumerate(gradients):
        weight.grad = gradient.clone()
        found.step(number)
    return before, gradients, weight.detach()


def test_adadelta_is_zeilers_algorithm_1():
    rho, eps = 0.9, 1e-3
    weight, gradients, after = three_updates("adadelta", adadelta_rho=rho, adadelta_eps=eps)
    squares, steps = torch.zeros_like(weight), torch.zeros_like(weight)
    for gradient in gradients:
        squares = rho * squares + (1 - rho) * gradient**2
        step = -((steps + eps) / (squares + eps)).sqrt() * gradient
        steps = rho * steps + (1 - rho) * step**2
        weight = weight + 0.3 * step
    torch.testing.assert_close(after, weight, rtol=1e-5, atol=1e-6)


def test_nag_looks_ahead_of_its_momentum():
    """Sutskever et al. 2013, eq. 3 and 4, with theta + mu v as the weight that is stored."""
    mu = 0.9
    weight, gradients, after = three_updates("nag", momentum=mu)
    velocity, theta = torch.zeros_like(weight), weight
    for gradient in gradients:
        velocity = mu * velocity - 0.3 * gradient
        theta = theta + velocity
    torch.testing.assert_close(after, theta + mu * velocity, rtol=1e-5, atol=1e-6)


CLASSES = {
    "adam": (torch.optim.Adam, {"betas": (0.9, 0.98), "eps": 1e-9, "fused": True}),
    "adadelta": (torch.optim.Adadelta, {"rho": 0.95, "eps": 1e-6}),
    "nag": (torch.optim.SGD, {"momentum": 0.99, "nesterov": True, "fused": True}),
}


@pytest.mark.parametrize("name", CLASSES)
def test_updates_are_those_of_the_librarys_classes_to_the_bit(name):
    before, gradients, after = three_updates(name)
    weight = before.clone().requires_grad_()
    kind, constants = CLASSES[name]
    method = kind([weight], lr=0.3, **constants)
    for gradient in gradients:
        weight.grad = gradient.clone()
        method.step()
    assert torch.equal(after, weight.detach())


@pytest.mark.parametrize("name", CLASSES)
def test_optimiser_state_keys_match_the_torch_classes(name):
    kind, constants = CLASSES[name]
    weight = torch.ones(3, requires_grad=True)
    weight.grad = torch.ones(3)
    method = kind([weight], lr=0.3, **constants)
    method.step()
    rule = update_rule(TRAINING.model_copy(update={"optimiser": name}))
    assert rule.state(weight).keys() == method.state[weight].keys()


@pytest.mark.parametrize("name", CLASSES)
def test_step_skipped_on_the_device_leaves_no_trace(name):
    """Gradients of no number, in between two updates."""
    rule = update_rule(TRAINING.model_copy(update={"optimiser": name}))
    gradients = torch.randn(2, 4)

    def moved(*skipped: bool) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        weight, good = torch.ones(4), iter(gradients)
        state = rule.state(weight)
        for skip in skipped:
            gradient = torch.tensor([math.nan, math.inf, -math.inf, 1.0]) if skip else next(good).clone()
            rule.move([weight], [gradient], [state], 0.1, torch.tensor(float(skip)))
        return weight, state

    torch.testing.assert_close(moved(False, True, False), moved(False, False), rtol=0, atol=0)


def test_an_update_imports_no_compiler():
    """It takes a second and a half, in every training."""
    code = """
import sys, torch
from pipeline.config import TrainingConfig
from pipeline.training.update_rules import update_rule
for name in ("adam", "adadelta", "nag"):
    rule = update_rule(TrainingConfig(max_steps=1, optimiser=name, schedule="constant", lr=0.1, tokens_per_update=1,
                                      validate_every=1, checkpoint_every=1))
    weight = torch.ones(3)
    rule.move([weight], [torch.ones(3)], [rule.state(weight)], 0.1, None)
assert "torch._dynamo" not in sys.modules and "sympy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


def test_branch_weights_move_on_the_simplex_until_frozen(optimiser):
    for number in range(7):
        before = copies(optimiser.branch_weights)
        update(optimiser, number)
        assert any(not torch.equal(*pair) for pair in zip(before, optimiser.branch_weights, strict=True))
        for weights in optimiser.branch_weights:
            assert weights.min() >= 0
            assert float(weights.detach().sum()) == pytest.approx(1, abs=1e-6)


def test_frozen_branch_weights_do_not_change_while_others_move(optimiser):
    with torch.no_grad():
        optimiser.branch_weights[0].add_(0.25)  # off the simplex: a projection would change it
    before = copies(optimiser.branch_weights)
    others = copies(optimiser.parameters[:1])
    update(optimiser, 7)
    assert all(torch.equal(*pair) for pair in zip(before, optimiser.branch_weights, strict=True))
    assert not torch.equal(others[0], optimiser.parameters[0])


def test_moments_restored_from_tensors_give_the_same_next_update(any_optimiser):
    optimiser = any_optimiser
    update(optimiser, 0)
    kept = {name: tensor.clone() for name, tensor in optimiser.tensors().items()}
    weights = copies(optimiser.parameters)
    torch.manual_seed(7)
    update(optimiser, 1)
    expected = copies(optimiser.parameters)
    with torch.no_grad():
        for parameter, weight in zip(optimiser.parameters, weights, strict=True):
            parameter.copy_(weight)
    optimiser.load_tensors(kept)
    torch.manual_seed(7)
    update(optimiser, 1)
    assert all(torch.equal(*pair) for pair in zip(expected, optimiser.parameters, strict=True))


def test_rates_held_on_the_device_move_weights_alike(any_optimiser):
    held = Optimiser(copy.deepcopy(any_optimiser.model), any_optimiser.schedule, any_optimiser.schedule.training)
    held.hold_rates()
    for number in range(3):
        for first, other in zip(any_optimiser.parameters, held.parameters, strict=True):
            first.grad = torch.randn_like(first)
            other.grad = first.grad.clone()
        any_optimiser.step(number)
        held.step(number)
        assert [float(rate) for rate in held.rates] == pytest.approx([*any_optimiser.rates])
    torch.testing.assert_close(copies(held.parameters), copies(any_optimiser.parameters), rtol=1e-5, atol=1e-6)
