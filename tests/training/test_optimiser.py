import copy
import math

import pytest
import torch
from made_records import training_config

from pipeline.models.architectures import build_model
from pipeline.models.weighted_transformer.settings import WeightedTransformerConfig
from pipeline.training.optimiser import Optimiser, Schedule
from pipeline.training.update_rules import update_rule

CONFIG = WeightedTransformerConfig(
    architecture="weighted_transformer", num_layers=1, d_model=8, d_ff=16, num_heads=2, dropout=0.0
)


STEPS = {"max_steps": 10, "warmup_steps": 4, "branch_warmup_steps": 2, "branch_freeze_steps": 3}
TRAINING = training_config(schedule="inverse_sqrt", lr=None, tokens_per_update=1, **STEPS)
EXACT, NEAR = {"rtol": 0, "atol": 0}, {"rtol": 1e-5, "atol": 1e-6}


def new_optimiser(**settings) -> Optimiser:
    training = TRAINING.model_copy(update=settings)
    return Optimiser(build_model(CONFIG, (30, 30)), Schedule(CONFIG, training), training)


every_optimiser = pytest.mark.parametrize("name", ["adam", "adadelta", "nag"])


def update(optimiser: Optimiser, number: int) -> list[torch.Tensor]:
    """Make an update and return its gradients, which are random."""
    gradients = [torch.randn_like(parameter) for parameter in optimiser.parameters]
    for parameter, gradient in zip(optimiser.parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    optimiser.step(number)
    return gradients


def copies(parameters) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in parameters]


def test_an_update_is_adam_written_out_with_the_scheduled_rate():
    optimiser = new_optimiser()
    weight = optimiser.parameters[0]
    before, (gradient, *_) = weight.detach().clone(), update(optimiser, 0)
    mean, variance = 0.1 * gradient, 0.02 * gradient**2
    step = mean / (1 - 0.9) / ((variance / (1 - 0.98)).sqrt() + 1e-9)
    rate = 8**-0.5 * 4**-1.5
    torch.testing.assert_close(weight.detach(), before - rate * step, **NEAR)


def three_updates(name: str, **settings) -> tuple[torch.Tensor, list[torch.Tensor], torch.Tensor]:
    """A weight before, its gradients in three updates at a rate of 0.3, and the weight after."""
    optimiser = new_optimiser(optimiser=name, schedule="constant", lr=0.3, **settings)
    weight = optimiser.parameters[0]
    before = weight.detach().clone()
    gradients = [update(optimiser, number)[0] for number in range(3)]
    return before, gradients, weight.detach()


TORCH = [
    ("adam", {}, torch.optim.Adam, {"betas": (0.9, 0.98), "eps": 1e-9, "fused": True}),
    ("adam", {"adam_beta1": 0.5, "adam_eps": 0.1}, torch.optim.Adam, {"betas": (0.5, 0.98), "eps": 0.1, "fused": True}),
    ("adadelta", {}, torch.optim.Adadelta, {"rho": 0.95, "eps": 1e-6}),
    ("adadelta", {"adadelta_rho": 0.9, "adadelta_eps": 1e-3}, torch.optim.Adadelta, {"rho": 0.9, "eps": 1e-3}),
    ("nag", {}, torch.optim.SGD, {"momentum": 0.99, "nesterov": True, "fused": True}),
    ("nag", {"momentum": 0.9}, torch.optim.SGD, {"momentum": 0.9, "nesterov": True, "fused": True}),
]
"""Optimisers with changed settings, and torch's with its constants."""


@pytest.mark.parametrize(("name", "settings", "kind", "constants"), TORCH)
def test_updates_and_state_are_those_of_torch_to_the_bit(name, settings, kind, constants):
    before, gradients, after = three_updates(name, **settings)
    weight = before.clone().requires_grad_()
    method = kind([weight], lr=0.3, **constants)
    for gradient in gradients:
        weight.grad = gradient.clone()
        method.step()
    assert torch.equal(after, weight.detach())
    rule = update_rule(TRAINING.model_copy(update={"optimiser": name}))
    assert rule.state(weight).keys() == method.state[weight].keys()


@every_optimiser
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

    torch.testing.assert_close(moved(False, True, False), moved(False, False), **EXACT)


@torch.no_grad()
def test_branch_weights_of_a_skipped_step_are_not_projected():
    optimiser = new_optimiser()
    for weight in optimiser.branch_weights:
        weight.fill_(0.3)
        weight.grad = torch.full_like(weight, math.nan)
    optimiser.step(0, skip=torch.ones(()))
    assert all((weight == 0.3).all() for weight in optimiser.branch_weights)


def test_a_step_that_the_device_takes_has_the_same_bytes():
    chosen = new_optimiser()
    plain = copy.deepcopy(chosen)
    for optimiser, skip in ((chosen, torch.zeros(())), (plain, None)):
        for number, parameter in enumerate(optimiser.parameters):
            parameter.grad = torch.linspace(-1, number, parameter.numel()).view_as(parameter)
        optimiser.step(0, skip=skip)
    torch.testing.assert_close(copies(chosen.parameters), copies(plain.parameters), **EXACT)


def test_branch_weights_move_on_the_simplex_until_they_freeze():
    """Their gradients differ, because the projection onto the simplex undoes equal steps."""
    optimiser = new_optimiser()
    before = copies(optimiser.branch_weights)
    for weight in optimiser.branch_weights:
        weight.grad = torch.arange(2.0)
    optimiser.step(0)
    assert len(before) == 4 and not any(map(torch.equal, before, optimiser.branch_weights))
    for weight in optimiser.branch_weights:
        assert (weight >= 0).all() and weight.sum().item() == pytest.approx(1, abs=1e-6)


def test_frozen_branch_weights_do_not_change_while_others_move():
    optimiser = new_optimiser()
    optimiser.branch_weights[0].data.add_(0.25)  # off the simplex: a projection would change it
    before, (other,) = copies(optimiser.branch_weights), copies(optimiser.parameters[:1])
    update(optimiser, 7)
    torch.testing.assert_close(copies(optimiser.branch_weights), before, **EXACT)
    assert not torch.equal(other, optimiser.parameters[0])


@every_optimiser
def test_moments_restored_from_tensors_give_the_same_next_update(name):
    optimiser, found = new_optimiser(optimiser=name), []
    update(optimiser, 0)
    kept, weights = {name: tensor.clone() for name, tensor in optimiser.tensors().items()}, copies(optimiser.parameters)
    for is_restored in (False, True):
        if is_restored:
            for parameter, weight in zip(optimiser.parameters, weights, strict=True):
                parameter.data.copy_(weight)
            optimiser.load_tensors(kept)
        torch.manual_seed(7)
        update(optimiser, 1)
        found.append(copies(optimiser.parameters))
    torch.testing.assert_close(*found, **EXACT)


@every_optimiser
def test_rates_held_on_the_device_move_weights_alike(name):
    plain = new_optimiser(optimiser=name)
    held = Optimiser(copy.deepcopy(plain.model), plain.schedule, plain.schedule.training)
    held.hold_rates()
    for number in range(3):
        for optimiser in (plain, held):
            torch.manual_seed(number)
            update(optimiser, number)
        assert [float(rate) for rate in held.rates] == pytest.approx([*plain.rates])
    torch.testing.assert_close(copies(held.parameters), copies(plain.parameters), **NEAR)
