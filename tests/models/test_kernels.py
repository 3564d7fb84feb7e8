"""Kernels, autocast and compiled layers compute what the plain layers compute."""

import pytest
import torch
from gradients import assert_close_by_name, loss_and_gradients, with_gradients
from made_records import training_config
from recurrent_models import STRUCTURES as RECURRENT
from small_models import CONFIGS as TRANSFORMERS, VOCAB, pairs
from speech_batches import VOCAB as CHARACTERS, attention_config, ctc_config, joint_config, speech
from torch import nn

from pipeline.models import kernels
from pipeline.models.architectures import build_model
from pipeline.models.ctc.model import Convolution
from pipeline.models.ctc.settings import KERNELS
from pipeline.models.kernels.autocast import cached_casts
from pipeline.models.kernels.dropout import _DropoutFunction
from pipeline.models.kernels.gru import gru_sequences
from pipeline.models.kernels.operators import softmax, softmax_backward
from pipeline.models.layers.regularisation import dropout
from pipeline.models.seq2seq import Seq2Seq
from pipeline.training.update_rules import update_rule

SPEECH = {
    "attention": attention_config(),
    "last context": attention_config(gru_reads="last context", task_state="state and context"),
    "one position": attention_config(location_width=1),
    "ctc": ctc_config(),
    "joint": joint_config(),
}
TEXT = RECURRENT | {name: TRANSFORMERS[name] for name in ("transformer", "weighted", "weighted, literal")}


def compare(model: Seq2Seq, batch, smoothing: float) -> None:
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    fast, gradients = loss_and_gradients(model, lambda: model.loss(batch, smoothing))
    with kernels.disabled():
        plain, expected = loss_and_gradients(model, lambda: model.loss(batch, smoothing))
    torch.testing.assert_close(fast.loss, plain.loss, rtol=1e-4, atol=1e-6)
    felt = {
        name: gradient for name, gradient in expected.items() if not name.endswith("offset")
    }  # a softmax ignores it
    assert gradients.keys() == expected.keys()
    assert_close_by_name({name: gradients[name] for name in felt}, felt, rel=1e-4, least=1e-2)


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
    kernel = _DropoutFunction.__name__
    with pytest.raises(ZeroDivisionError), kernels.disabled():
        assert not kernels.enabled() and kernel not in type(dropout(x, 0.5).grad_fn).__name__
        raise ZeroDivisionError
    assert kernels.enabled_on_cpu(x) and kernel in type(dropout(x, 0.5).grad_fn).__name__


@pytest.mark.parametrize("length", [1, 7, 15, 16, 40])
def test_softmax_of_short_rows_equals_exponentials(length):
    torch.manual_seed(length)
    scores = torch.randn(3, 4, length, dtype=torch.float64, requires_grad=True)
    visible = torch.rand(3, 1, length) < 0.7
    visible[..., 0] = True
    masked = scores.masked_fill(~visible, -torch.inf)
    expected = masked.exp() / masked.exp().sum(-1, keepdim=True)
    with torch.no_grad():
        torch.testing.assert_close(softmax(masked, out=torch.empty_like(expected)), expected, rtol=1e-12, atol=0)
    found, weight = softmax(masked), torch.randn_like(expected)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)
    (gradient,) = torch.autograd.grad(expected, masked, weight, retain_graph=True)
    (through_graph,) = torch.autograd.grad(found, masked, weight)
    for other in (through_graph, softmax_backward(weight, found.detach())):
        torch.testing.assert_close(other, gradient, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("frames", [23, 24])
@pytest.mark.parametrize("kernel", [*KERNELS, (5, 3, 3, 1)])
def test_convolution_and_its_gradients_equal_torch(kernel, frames):
    (width, height, hop, jump), channels = kernel, 3
    own = Convolution(channels, 4, (width, height), (hop, jump), (width // 2, height // 2)).double()
    x = torch.randn(2, channels, frames, 40, dtype=torch.float64, requires_grad=True)
    found, expected = (with_gradients([out], [x, *own.parameters()]) for out in (own(x), nn.Conv2d.forward(own, x)))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("is_narrow", [False, True], ids=["float64", "bfloat16"])
def test_grus_side_by_side_and_their_gradients_equal_torch(is_narrow):
    """Under bfloat16, states stay in float32."""
    kind = torch.float32 if is_narrow else torch.float64
    layers = [nn.GRU(size, 6, batch_first=True).to(kind) for size in (4, 5)]
    inputs = [torch.randn(3, 9, size, dtype=kind, requires_grad=True) for size in (4, 5)]
    leaves = [*inputs, *(weight for layer in layers for weight in layer.parameters())]
    with torch.autocast("cpu", torch.bfloat16, enabled=is_narrow):
        states = gru_sequences(layers, inputs)
    expected = with_gradients([layer(x)[0] for layer, x in zip(layers, inputs, strict=True)], leaves)
    for first, other in zip(with_gradients(states, leaves), expected, strict=True):
        limit = 0.02 * other.abs().max().item() if is_narrow else 1e-12
        torch.testing.assert_close(first, other, rtol=0 if is_narrow else 1e-10, atol=limit)


@pytest.fixture
def weights():
    return [nn.Parameter(torch.randn(3, 2)), nn.Parameter(torch.randn(2))]


def narrow(weights):
    return tuple(weight.detach().to(torch.bfloat16) for weight in weights)


@torch.no_grad()
def test_cached_casts_are_renewed_only_after_a_weight_changes(weights):
    first = cached_casts(torch.bfloat16, weights)
    torch.testing.assert_close(first, narrow(weights), rtol=0, atol=0)
    assert cached_casts(torch.bfloat16, weights) is first
    weights[1].mul_(2)
    second = cached_casts(torch.bfloat16, weights)
    assert second is not first and second[1].equal(narrow(weights)[1])
    assert cached_casts(torch.float16, weights)[0].dtype == torch.float16


@pytest.mark.parametrize(("optimiser", "lr"), [("adam", 0.1), ("adadelta", 10), ("nag", 0.1)])
def test_validation_after_a_step_uses_the_updated_weights(weights, optimiser, lr):
    """Every update at these rates moves a weight by more than bfloat16's spacing, 0.016 between 2 and 4."""
    rule = update_rule(training_config(optimiser=optimiser, lr=lr, sentences_per_update=4))
    states = [rule.state(weight) for weight in weights]
    for _ in range(3):
        before = narrow(weights)
        sum(cast.float().square().sum() for cast in cached_casts(torch.bfloat16, weights)).backward()
        with torch.no_grad():
            rule.move(weights, [weight.grad for weight in weights], states, lr, torch.zeros(()))
            torch.testing.assert_close(cached_casts(torch.bfloat16, weights), narrow(weights), rtol=0, atol=0)
        assert not any(map(torch.equal, before, narrow(weights)))
