"""Gradients of whole models against changes of their loss: nothing is detached or derived wrongly on the way."""

from dataclasses import replace

import pytest
import recurrent_models
import small_models
import torch
from small_models import pairs
from speech_batches import (
    FUSIONS,
    VOCAB,
    attention_config,
    ctc_config,
    fused_recogniser,
    joint_config,
    lm_config,
    speech,
)

from pipeline.models.architectures import build_model

TEXT = small_models.CONFIGS | recurrent_models.CONFIGS
SPEECH = {"attention": attention_config(), "last context": attention_config(gru_reads="last context")}
SPEECH |= {"ctc": ctc_config(), "joint": joint_config(), "language model": lm_config()}


@pytest.fixture(autouse=True)
def in_double_precision(monkeypatch):
    """Models compute probabilities in float32 at least, here in float64."""
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    monkeypatch.setattr(torch, "float32", torch.float64)


def slope_along_gradient(model, batch) -> tuple[float, float]:
    """Return the slope of the loss along its gradient by central differences, and the norm of the gradient."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    gradients = torch.autograd.grad(model.loss(batch, 0.0).loss, weights, materialize_grads=True)
    norm = float(torch.cat([gradient.flatten() for gradient in gradients]).norm())
    step = 1e-5 / norm

    @torch.no_grad()
    def loss_further_on(distance: float) -> float:
        for weight, gradient in zip(weights, gradients, strict=True):
            weight += distance / norm * gradient
        return float(model.loss(batch, 0.0).loss)

    ahead, behind = loss_further_on(step), loss_further_on(-2 * step)
    return (ahead - behind) / (2 * step), norm


@pytest.mark.parametrize("name", TEXT)
def test_loss_of_a_translation_model_rises_along_its_gradient(name):
    """ConvS2S divides one gradient on purpose, but not here."""
    model = build_model(TEXT[name], (small_models.VOCAB, small_models.VOCAB)).double().eval()
    if name == "convolutional":
        model.encoder.gradient_count = 1
    slope, norm = slope_along_gradient(model, pairs([9, 4, 6], [3, 8, 5]))
    assert slope == pytest.approx(norm, rel=1e-5)


@pytest.mark.parametrize("name", [*SPEECH, *FUSIONS])
def test_loss_of_a_recogniser_rises_along_its_gradient(name):
    model = fused_recogniser(name) if name in FUSIONS else build_model(SPEECH[name], (VOCAB, VOCAB))
    batch = speech([48, 31, 40], [5, 3, 7])
    slope, norm = slope_along_gradient(model.double().eval(), replace(batch, frames=batch.frames.double()))
    assert slope == pytest.approx(norm, rel=1e-5)
