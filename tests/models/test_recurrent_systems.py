"""Properties of the ten systems' recurrent and convolutional models, and of the variants behind their settings."""

import dataclasses

import pytest
import torch
from recurrent_models import CONFIGS
from small_models import VOCAB, pairs, rows
from torch.nn import functional as F

from pipeline.models.build import build_model


@pytest.fixture(params=CONFIGS)
def system(request):
    return CONFIGS[request.param]


def evaluated(system):
    return build_model(system, (VOCAB, VOCAB)).eval()


def logits(model, batch):
    """Teacher-forced logits (B, T, V)."""
    return model.logits(model.states(batch))


@torch.no_grad()
def test_padding_changes_nothing(system):
    model, batch = evaluated(system), pairs([9, 4, 6], [3, 8, 5])
    together = logits(model, batch)
    for row, (src_length, tgt_length) in enumerate([(9, 3), (4, 8), (6, 5)]):
        alone = logits(model, rows(batch, row, src_length, tgt_length))
        torch.testing.assert_close(together[row, :tgt_length], alone[0], rtol=0, atol=2e-5)


@torch.no_grad()
def test_later_targets_leave_earlier_logits_alone(system):
    model, batch = evaluated(system), pairs([6, 6], [8, 8])
    before = logits(model, batch)
    for position in (2, 5):
        changed = batch.tgt_in.clone()
        changed[:, position] = (changed[:, position] + 1) % VOCAB
        after = logits(model, dataclasses.replace(batch, tgt_in=changed))
        torch.testing.assert_close(after[:, :position], before[:, :position], rtol=0, atol=1e-5)
        assert not torch.allclose(after[:, position], before[:, position], atol=1e-7)


@torch.inference_mode()
def test_incremental_steps_equal_teacher_forcing(system):
    model, batch = evaluated(system), pairs([9, 4, 6], [7, 7, 7])
    expected = logits(model, batch)
    source, cache = model.start(batch)
    for position in range(7):
        step_logits, cache = model.step(batch.tgt_in[:, position : position + 1], source, cache)
        assert step_logits.dtype == torch.float32
        torch.testing.assert_close(step_logits[:, 0], expected[:, position], rtol=0, atol=2e-5)


@torch.inference_mode()
def test_hypotheses_of_a_sentence_do_not_see_each_other(system):
    model, batch = evaluated(system), pairs([9, 4], [6, 6])
    hypotheses = torch.randint(4, VOCAB, (2, 3, 6))
    source, cache = model.start(batch)
    cache = torch.utils._pytree.tree_map(lambda t: t.expand(-1, 3, *t.shape[2:]), cache)
    for position in range(6):
        step_logits, cache = model.step(hypotheses[..., position], source, cache)
    for k in range(3):
        expected = logits(model, dataclasses.replace(batch, tgt_in=hypotheses[:, k]))[:, -1]
        torch.testing.assert_close(step_logits[:, k], expected, rtol=0, atol=2e-5)


@torch.no_grad()
def test_loss_is_the_cross_entropy_of_real_positions(system):
    model, batch = evaluated(system), pairs([9, 4, 6], [3, 8, 5])
    real = batch.tgt_out != 0
    sums = model.loss(batch, 0.0)
    expected = F.cross_entropy(logits(model, batch)[real], batch.tgt_out[real], reduction="sum")
    assert sums.tokens == 16
    torch.testing.assert_close(sums.loss, expected, rtol=1e-5, atol=0)
    torch.testing.assert_close(sums.nll, expected, rtol=1e-5, atol=0)


def test_every_parameter_learns_but_what_a_softmax_does_not_feel(system):
    model = build_model(system, (VOCAB, VOCAB)).train()
    model.loss(pairs([9, 4, 6], [3, 8, 5]), 0.1).loss.backward()
    idle = {name for name, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()}
    assert {name for name in idle if not name.endswith("offset")} == set()


def test_dropout_acts_in_training_alone_and_follows_the_seed(system):
    name = "dropout" if system.architecture == "convolutional" else "output_dropout"
    model, batch = build_model(system.model_copy(update={name: 0.5}), (VOCAB, VOCAB)), pairs([5, 5], [6, 6])

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
