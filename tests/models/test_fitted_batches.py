"""Batches padded to a shape of the grid: the same loss and gradients as those of the batch itself.

Tolerance: 2e-5 of the loss, and of each gradient 1e-4 of its norm, in float32.
"""

import pytest
import recurrent_models
import small_models
import speech_batches
import torch
from small_models import pairs
from speech_batches import VOCAB, attention_config, ctc_config, fusion_config, joint_config, lm_config, speech

from pipeline.data.batches.base import Batch
from pipeline.data.batches.fixed_size_batches import TextOnlyBatch
from pipeline.models.architectures import build_model
from pipeline.models.language_model.fusion import FusedModel
from pipeline.models.language_model.model import LanguageModel
from pipeline.models.seq2seq import Seq2Seq

TEXT = small_models.STRUCTURES | recurrent_models.STRUCTURES
SPEECH = {
    "recogniser": attention_config(),
    "recogniser, last context": attention_config(gru_reads="last context", task_state="state"),
    "ctc": ctc_config(),
    "joint recogniser": joint_config(),
    "ctc, normalised utterances": ctc_config(utterance_mean="removed", utterance_deviation="one"),
}
SEED = 7


def computed(model: Seq2Seq, batch: Batch, smoothing: float) -> tuple[float, float, dict[str, torch.Tensor]]:
    """Loss, negative log-likelihood and gradients in training, without changing the model."""
    torch.manual_seed(SEED)
    sums = model.train().loss(batch, smoothing)
    named = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    found = torch.autograd.grad(sums.loss, [*named.values()], allow_unused=True)
    gradients = {name: gradient for name, gradient in zip(named, found, strict=True) if gradient is not None}
    return float(sums.loss.detach()), float(sums.nll), gradients


def assert_padding_changes_nothing(model: Seq2Seq, batch: Batch, smoothing: float) -> None:
    rows, source = batch.src_shape
    fitted = batch.fitted_to(rows + 3, source + 9, batch.tgt_out.shape[1] + 4)
    assert fitted.num_tokens == batch.num_tokens and fitted.tgt_out.shape[0] == rows + 3
    *expected, gradients = computed(model, batch, smoothing)
    *found, padded = computed(model, fitted, smoothing)
    assert found == pytest.approx(expected, rel=2e-5)
    assert padded.keys() == gradients.keys()
    scale = max(float(gradient.norm()) for gradient in gradients.values())
    for name, gradient in gradients.items():
        assert float((padded[name] - gradient).norm()) < 1e-4 * max(float(gradient.norm()), 1e-2 * scale), name


@pytest.mark.parametrize("name", TEXT)
def test_padding_a_text_batch_changes_no_gradient(name):
    model = build_model(TEXT[name], (small_models.VOCAB, small_models.VOCAB))
    assert_padding_changes_nothing(model, pairs([5, 8, 3, 8], [4, 7, 7, 2]), 0.1)


@pytest.mark.parametrize("name", SPEECH)
def test_padding_a_speech_batch_changes_no_gradient(name):
    model = build_model(SPEECH[name], (VOCAB, VOCAB))
    smoothing = 0.0 if "ctc" in name else 0.1
    assert_padding_changes_nothing(model, speech([40, 31, 57], [4, 3, 6]), smoothing)


@pytest.mark.parametrize("row", ["DF0", "DF3", "CF2", "CF4"])
def test_padding_a_batch_of_a_fusion_changes_no_gradient(row):
    task = build_model(attention_config(), (VOCAB, VOCAB))
    model = FusedModel(fusion_config(row), task, LanguageModel(lm_config(), VOCAB), VOCAB)
    assert_padding_changes_nothing(model, speech([40, 31, 57], [4, 3, 6]), 0.1)


def test_padding_a_batch_of_text_alone_changes_no_gradient():
    batch = pairs([3, 3, 3], [4, 7, 2])
    model = build_model(lm_config(), (small_models.VOCAB, small_models.VOCAB))
    assert_padding_changes_nothing(model, TextOnlyBatch(batch.tgt_in, batch.tgt_out), 0.1)


def test_padded_utterances_leave_running_statistics_alone():
    model, batch = build_model(ctc_config(), (VOCAB, VOCAB)), speech([40, 31, 57], [4, 3, 6])
    before = [buffer.clone() for buffer in model.buffers()]
    computed(model, batch, 0.0)
    expected = [buffer.clone() for buffer in model.buffers()]
    for buffer, value in zip(model.buffers(), before, strict=True):
        buffer.copy_(value)
    computed(model, batch.fitted_to(5, 64, 9), 0.0)
    torch.testing.assert_close([*model.buffers()], expected)


def test_a_fitted_batch_keeps_what_it_knows_when_moved():
    batch = speech_batches.speech([9, 7], [2, 3])
    moved = batch.fitted_to(4, 12, 6).packed(pin=False).to("cpu")
    assert moved.on_grid and moved.num_tokens == batch.num_tokens == 7
    assert moved.buffer is not None and moved.frames.shape == (4, 12, batch.frames.shape[2])
