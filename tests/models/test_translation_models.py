"""Properties that hold for every model of a target given a source, whatever its architecture."""

import dataclasses

import pytest
import recurrent_models
import small_models
import torch
from small_models import VOCAB, pairs
from torch.nn import functional as F

from pipeline.models.architectures import build_model

TRANSFORMERS, OTHERS = small_models.CONFIGS, recurrent_models.STRUCTURES
STRUCTURES = small_models.STRUCTURES | OTHERS
ROUNDING = 2e-5


@pytest.fixture(params=STRUCTURES)
def model(request):
    return build_model(STRUCTURES[request.param], (VOCAB, VOCAB)).eval()


@pytest.fixture(params=TRANSFORMERS | OTHERS)
def any_model(request):
    """Any values of the branch weights, too."""
    return build_model((TRANSFORMERS | OTHERS)[request.param], (VOCAB, VOCAB)).eval()


def logits(model, batch):
    """Teacher-forced logits (B, T, V)."""
    return model.logits(model.states(batch))


@torch.no_grad()
def test_loss_is_the_smoothed_cross_entropy_of_real_positions(any_model):
    batch = pairs([9, 4, 6], [3, 8, 5])
    log_probs = logits(any_model, batch).log_softmax(-1)
    target = F.one_hot(batch.tgt_out, VOCAB) * (0.9 - 0.1 / (VOCAB - 1)) + 0.1 / (VOCAB - 1)
    real = batch.tgt_out != 0
    sums = any_model.loss(batch, 0.1)
    assert sums.tokens == 16
    torch.testing.assert_close(sums.loss, -(target * log_probs).sum(-1)[real].sum(), rtol=1e-5, atol=0)
    expected_nll = -log_probs.gather(-1, batch.tgt_out.unsqueeze(-1)).squeeze(-1)[real].sum()
    torch.testing.assert_close(sums.nll, expected_nll, rtol=1e-5, atol=0)


def test_every_parameter_gets_a_gradient_but_softmax_offsets(any_model):
    """Branch weights that are drawn at random get none either."""
    any_model.train().loss(pairs([9, 4, 6], [3, 8, 5]), 0.1).loss.backward()
    silent = {name for name, p in any_model.named_parameters() if p.grad is None or not p.grad.any()}
    drawn = ("kappa", "alpha") if getattr(any_model.config, "weights", "learned") == "random" else ()
    expected = {name for name, _ in any_model.named_parameters() if name.endswith(drawn)}
    assert {name for name in silent if not name.endswith("offset")} == expected


def test_bfloat16_loss_and_gradients_are_near_float32(any_model):
    """Gradients of thirty pairs differ by up to 6 %, those of three by up to a third; both vary with the weights."""
    batch, is_transformer = pairs([9, 4, 6] * 10, [3, 8, 5] * 10), "transformer" in any_model.config.architecture
    wide = any_model.loss(batch, 0.1)
    with torch.autocast("cpu", torch.bfloat16):
        narrow = any_model.loss(batch, 0.1)
    assert narrow.loss.dtype == torch.float32
    torch.testing.assert_close(narrow.loss, wide.loss, rtol=0.005 if is_transformer else 0.05, atol=0)
    weights = any_model.parameter_groups()["weights"]
    gradients = [torch.autograd.grad(sums.loss, weights, materialize_grads=True) for sums in (wide, narrow)]
    expected, ours = (torch.cat([gradient.flatten() for gradient in found]) for found in gradients)
    assert (ours - expected).norm() < 0.15 * expected.norm()


def test_dropout_acts_in_training_alone_and_follows_the_seed(model):
    """First weights are large: with those of dl4mt, two losses may be equal by rounding."""
    changes = (
        {"output_dropout": 0.5, "init_scale": 0.5} if model.config.architecture == "recurrent" else {"dropout": 0.5}
    )
    dropping, batch = build_model(model.config.model_copy(update=changes), (VOCAB, VOCAB)), pairs([5, 5], [6, 6])

    def loss(seed: int) -> float:
        torch.manual_seed(seed)
        return float(dropping.loss(batch, 0.0).nll)

    assert loss(1) == loss(1) != loss(2)
    dropping.eval()
    assert loss(1) == loss(2)


@torch.no_grad()
def test_later_targets_leave_earlier_logits_alone(model):
    """To the bit, where products are as long as before."""
    rounding = 0 if "transformer" in model.config.architecture else 1e-5
    batch = pairs([6, 6], [8, 8])
    before = logits(model, batch)
    for position in (2, 5):
        changed = batch.tgt_in.clone()
        changed[:, position] = (changed[:, position] + 1) % VOCAB
        after = logits(model, dataclasses.replace(batch, tgt_in=changed))
        torch.testing.assert_close(after[:, :position], before[:, :position], rtol=0, atol=rounding)
        assert not torch.allclose(after[:, position], before[:, position], atol=1e-7)


@torch.inference_mode()
def test_steps_of_each_hypothesis_equal_teacher_forcing(model):
    batch, hypotheses = pairs([9, 4, 6], [7, 7, 7]), torch.randint(4, VOCAB, (3, 2, 7))
    expected = [logits(model, dataclasses.replace(batch, tgt_in=tgt_in)) for tgt_in in hypotheses.unbind(1)]
    source, cache = model.start(batch)
    cache = torch.utils._pytree.tree_map(lambda t: t.expand(-1, 2, *t.shape[2:]), cache)
    for position in range(7):
        found, cache = model.step(hypotheses[..., position], source, cache)
        assert found.dtype == torch.float32
        for ours, theirs in zip(found.unbind(1), expected, strict=True):
            torch.testing.assert_close(ours, theirs[:, position], rtol=0, atol=ROUNDING)
