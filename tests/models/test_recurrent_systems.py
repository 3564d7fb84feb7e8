"""Properties of the ten systems' recurrent and convolutional models, and of the variants behind their settings."""

import pytest
import torch
from recurrent_models import CONFIGS
from small_models import VOCAB, pairs
from torch.nn import functional as F

from pipeline.models.architectures import build_model


@pytest.fixture(params=CONFIGS)
def system(request):
    return CONFIGS[request.param]


def evaluated(system):
    return build_model(system, (VOCAB, VOCAB)).eval()


@torch.no_grad()
def test_loss_is_the_cross_entropy_of_real_positions(system):
    model, batch = evaluated(system), pairs([9, 4, 6], [3, 8, 5])
    real = batch.tgt_out != 0
    sums = model.loss(batch, 0.0)
    expected = F.cross_entropy(model.logits(model.states(batch))[real], batch.tgt_out[real], reduction="sum")
    assert sums.tokens == 16
    torch.testing.assert_close(sums.loss, expected, rtol=1e-5, atol=0)
    torch.testing.assert_close(sums.nll, expected, rtol=1e-5, atol=0)


def test_every_parameter_learns_but_what_a_softmax_does_not_feel(system):
    model = build_model(system, (VOCAB, VOCAB)).train()
    model.loss(pairs([9, 4, 6], [3, 8, 5]), 0.1).loss.backward()
    idle = {name for name, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()}
    assert {name for name in idle if not name.endswith("offset")} == set()


def test_dropout_acts_in_training_alone_and_follows_the_seed(system):
    """First weights are large: with those of dl4mt, two losses may be equal by rounding."""
    recurrent = {"output_dropout": 0.5, "init_scale": 0.5}
    changes = {"dropout": 0.5} if system.architecture == "convolutional" else recurrent
    model, batch = build_model(system.model_copy(update=changes), (VOCAB, VOCAB)), pairs([5, 5], [6, 6])

    def loss(seed: int) -> float:
        torch.manual_seed(seed)
        return float(model.loss(batch, 0.0).nll)

    assert loss(1) == loss(1) != loss(2)
    model.eval()
    assert loss(1) == loss(2)


def test_bfloat16_products_change_the_loss_by_their_rounding(system):
    model, batch = evaluated(system), pairs([9, 4, 6], [3, 8, 5])
    wide = model.loss(batch, 0.1)
    with torch.autocast("cpu", torch.bfloat16):
        narrow = model.loss(batch, 0.1)
    narrow.loss.backward()
    assert narrow.loss.dtype == torch.float32
    torch.testing.assert_close(narrow.loss, wide.loss, rtol=0.05, atol=0)
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)
