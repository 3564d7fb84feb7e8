"""Weights in a narrower type, kept between the positions of a search."""

import pytest
import torch

from pipeline.config import TrainingConfig
from pipeline.models.kernels.autocast import cached_casts
from pipeline.training.update_rules import update_rule

OTHERS = {"validate_every": 9, "checkpoint_every": 9, "keep_checkpoints": 1, "micro_batch_tokens": 99}


@pytest.fixture
def weights():
    return [torch.nn.Parameter(torch.randn(3, 2)), torch.nn.Parameter(torch.randn(2))]


def narrow(weights):
    return [weight.to(torch.bfloat16).tolist() for weight in weights]


@torch.no_grad()
def test_cached_casts_are_renewed_only_after_a_weight_changes(weights):
    first = cached_casts(torch.bfloat16, weights)
    assert [cast.tolist() for cast in first] == narrow(weights)
    assert cached_casts(torch.bfloat16, weights) is first
    weights[1].mul_(2)
    second = cached_casts(torch.bfloat16, weights)
    assert second is not first and second[1].tolist() == narrow(weights)[1]
    assert cached_casts(torch.float16, weights)[0].dtype == torch.float16


@pytest.mark.parametrize(("optimiser", "lr"), [("adam", 0.1), ("adadelta", 10), ("nag", 0.1)])
def test_validation_after_a_step_uses_the_updated_weights(weights, optimiser, lr):
    """Every update at these rates moves a weight by more than bfloat16's spacing, 0.016 between 2 and 4."""
    config = {"optimiser": optimiser, "schedule": "constant", "lr": lr, "max_steps": 9, "sentences_per_update": 4}
    rule = update_rule(TrainingConfig(**config, **OTHERS))
    states = [rule.state(weight) for weight in weights]
    for _ in range(3):
        before = narrow(weights)
        sum(cast.float().square().sum() for cast in cached_casts(torch.bfloat16, weights)).backward()
        with torch.no_grad():
            rule.move(weights, [weight.grad for weight in weights], states, lr, torch.zeros(()))
            assert [cast.tolist() for cast in cached_casts(torch.bfloat16, weights)] == narrow(weights) != before
