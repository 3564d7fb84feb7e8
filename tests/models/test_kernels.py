"""The switch between kernels and plain modules: losses and gradients of whole models agree."""

import pytest
import torch
from recurrent_models import CONFIGS as RECURRENT
from small_models import CONFIGS as TRANSFORMERS
from small_models import VOCAB, pairs
from speech_batches import VOCAB as CHARACTERS
from speech_batches import attention_config, ctc_config, joint_config, speech
from torch import Tensor

from pipeline.models import kernels
from pipeline.models.architectures import build_model
from pipeline.models.kernels.dropout import DropoutFunction
from pipeline.models.layers.regularisation import dropout
from pipeline.models.seq2seq import Seq2Seq

SPEECH = {
    "attention": attention_config(),
    "last context": attention_config(gru_reads="last context", task_state="state and context"),
    "ctc": ctc_config(),
    "joint": joint_config(),
}
TEXT = RECURRENT | {name: TRANSFORMERS[name] for name in ("transformer", "weighted", "weighted, literal")}


def loss_and_gradients(model: Seq2Seq, batch, smoothing: float) -> dict[str, Tensor]:
    model.zero_grad()
    torch.manual_seed(1)
    loss = model.loss(batch, smoothing).loss
    loss.backward()
    return {"loss": loss.detach()} | {
        name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None
    }


def compare(model: Seq2Seq, batch, smoothing: float) -> None:
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    fast = loss_and_gradients(model, batch, smoothing)
    with kernels.disabled():
        plain = loss_and_gradients(model, batch, smoothing)
    assert fast.keys() == plain.keys()
    for name, expected in plain.items():
        if not name.endswith("offset"):  # a softmax ignores it
            limit = 1e-4 * max(float(expected.abs().max()), 1e-2)
            torch.testing.assert_close(fast[name], expected, rtol=0, atol=limit, msg=name)


@pytest.mark.parametrize("name", TEXT)
def test_translation_model_equals_plain_modules(name):
    torch.manual_seed(3)
    compare(build_model(TEXT[name], (VOCAB, VOCAB)).train(), pairs([9, 4, 6], [3, 8, 5]), 0.1)


@pytest.mark.parametrize("rate", [0.0, 0.5])
@pytest.mark.parametrize("name", SPEECH)
def test_recogniser_equals_plain_modules(name, rate):
    torch.manual_seed(4)
    model = build_model(SPEECH[name], (CHARACTERS, CHARACTERS)).train()
    model.sampling_rate = rate
    compare(model, speech([37, 21, 30], [6, 3, 1]), 0.0 if name == "ctc" else 0.1)


def test_disabled_ends_with_its_block_even_after_errors():
    x = torch.ones(2, 3, requires_grad=True)
    kernel = DropoutFunction.__name__
    with pytest.raises(ZeroDivisionError), kernels.disabled():
        assert not kernels.enabled() and kernel not in type(dropout(x, 0.5).grad_fn).__name__
        raise ZeroDivisionError
    assert kernels.enabled_on_cpu(x) and kernel in type(dropout(x, 0.5).grad_fn).__name__
