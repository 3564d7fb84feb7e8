"""The recogniser's loop with its gradient by hand against its single steps, one after the other."""

import itertools

import pytest
import torch
from speech_batches import FUSIONS, VOCAB, attention_config, fusion_config, lm_config, speech
from torch import Tensor

from pipeline.models.fusion.model import FusedModel
from pipeline.models.language_model.model import LanguageModel
from pipeline.models.layers.regularisation import unrolled_loss
from pipeline.models.seq2seq import Seq2Seq
from pipeline.models.speech_attention.model import AttentionRecogniser

FORMS = list(itertools.product(("this context", "last context"), ("state and context", "state")))


def drawn(model: Seq2Seq) -> Seq2Seq:
    """Its weights are not near zero, as those that are learnt are not."""
    torch.manual_seed(4)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return model


def found(model: Seq2Seq, loss: Tensor) -> dict[str, Tensor]:
    """Gradients by name."""
    model.zero_grad()
    loss.backward()
    return {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}


def compare(model: Seq2Seq, rate: float) -> None:
    model.sampling_rate, batch = rate, speech([37, 21, 9], [6, 3, 1])
    torch.manual_seed(1)
    ours = model.loss(batch, 0.1)
    gradients = found(model, ours.loss)
    torch.manual_seed(1)
    theirs = unrolled_loss(model, batch, 0.1, rate)
    torch.testing.assert_close(ours.loss, theirs.loss, rtol=1e-5, atol=0)
    expected = found(model, theirs.loss)
    assert gradients.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(gradients[name], gradient, rtol=0, atol=1e-4 * float(gradient.abs().max()), msg=name)


@pytest.mark.parametrize("rate", [0.0, 0.5])
@pytest.mark.parametrize(("gru_reads", "task_state"), FORMS)
def test_loss_and_gradients_are_those_of_the_steps(gru_reads, task_state, rate):
    compare(drawn(AttentionRecogniser(attention_config(gru_reads=gru_reads, task_state=task_state), VOCAB)), rate)


@pytest.mark.parametrize("rate", [0.0, 0.5])
@pytest.mark.parametrize("row", FUSIONS)
def test_so_are_those_of_a_fusion(row, rate):
    task = AttentionRecogniser(attention_config(), VOCAB)
    compare(drawn(FusedModel(fusion_config(row), task, LanguageModel(lm_config(), VOCAB), VOCAB)), rate)


@pytest.mark.skipif(
    not torch.ops.mkldnn._is_mkldnn_bf16_supported(),
    reason="this processor has no bfloat16, of which oneDNN's LSTM knows no detour; trainings take float32 here",
)
def test_bfloat16_products_change_the_loss_by_their_rounding():
    model, batch = AttentionRecogniser(attention_config(), VOCAB).train(), speech([37, 21], [6, 3])
    with torch.autocast("cpu", torch.bfloat16):
        narrow = model.loss(batch, 0.0).loss
    wide = model.loss(batch, 0.0).loss
    torch.testing.assert_close(narrow, wide, rtol=0.01, atol=0)
    narrow.backward()
    assert all(weight.grad.isfinite().all() and weight.grad.dtype == torch.float32 for weight in model.parameters())
