"""Kernels, autocast and compiled layers compute what the plain layers compute."""

import pytest
import torch
from compiled_layers import CompiledLayers
from recurrent_models import STRUCTURES as RECURRENT
from small_models import CONFIGS as TRANSFORMERS
from small_models import VOCAB, pairs, transformer_config
from speech_batches import VOCAB as CHARACTERS
from speech_batches import attention_config, ctc_config, joint_config, speech
from torch import Tensor, nn

from pipeline.config import TrainingConfig
from pipeline.models import kernels
from pipeline.models.architectures import build_model
from pipeline.models.ctc.model import Convolution
from pipeline.models.ctc.settings import KERNELS
from pipeline.models.kernels.autocast import cached_casts
from pipeline.models.kernels.dropout import DropoutFunction
from pipeline.models.kernels.gru import gru_sequences
from pipeline.models.kernels.operators import softmax, softmax_backward
from pipeline.models.layers.regularisation import dropout
from pipeline.models.seq2seq import Seq2Seq
from pipeline.training.update_rules import update_rule

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


def gradients(outputs: list[Tensor], by: list[Tensor]) -> list[Tensor]:
    """Return the gradients of a random combination of `outputs`, always the same one."""
    drawn = torch.Generator().manual_seed(2)
    weights = [torch.randn(output.shape, generator=drawn, dtype=torch.float64).to(output.dtype) for output in outputs]
    return list(
        torch.autograd.grad(sum((output * weight).sum() for output, weight in zip(outputs, weights, strict=True)), by)
    )


@pytest.mark.parametrize("length", [1, 7, 15, 16, 40])
def test_softmax_of_short_rows_equals_exponentials(length):
    torch.manual_seed(length)
    scores = torch.randn(3, 4, length, dtype=torch.float64, requires_grad=True)
    visible = torch.rand(3, 1, length) < 0.7
    visible[..., 0] = True
    masked = scores.masked_fill(~visible, -torch.inf)
    exponentials = masked.exp()
    expected = exponentials / exponentials.sum(-1, keepdim=True)
    for out in (None, torch.empty_like(expected)):
        with torch.set_grad_enabled(out is None):
            torch.testing.assert_close(softmax(masked, out=out), expected, rtol=1e-12, atol=0)
    found, weight = softmax(masked), torch.randn_like(expected)
    (gradient,) = torch.autograd.grad(expected, masked, weight, retain_graph=True)
    (through_graph,) = torch.autograd.grad(found, masked, weight)
    for other in (through_graph, softmax_backward(weight, found.detach())):
        torch.testing.assert_close(other, gradient, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("frames", [23, 24])
@pytest.mark.parametrize("kernel", [*KERNELS, (5, 3, 3, 1)])
def test_convolution_and_its_gradients_equal_torch(kernel, frames):
    torch.manual_seed(1)
    (width, height, hop, jump), channels = kernel, 3
    own = Convolution(channels, 4, (width, height), (hop, jump), (width // 2, height // 2)).double()
    x = torch.randn(2, channels, frames, 40, dtype=torch.float64, requires_grad=True)
    by = [x, *own.parameters()]
    found, expected = own(x), nn.Conv2d.forward(own, x)
    for first, other in zip([found, *gradients([found], by)], [expected, *gradients([expected], by)], strict=True):
        torch.testing.assert_close(first, other, rtol=1e-10, atol=1e-10)


def units(kind: torch.dtype) -> tuple[list[nn.GRU], list[Tensor], list[Tensor]]:
    """Two units, their inputs, and all that has a gradient."""
    torch.manual_seed(1)
    layers = [nn.GRU(size, 6, batch_first=True).to(kind) for size in (4, 5)]
    inputs = [torch.randn(3, 9, size, dtype=kind, requires_grad=True) for size in (4, 5)]
    return layers, inputs, [*inputs, *(weight for layer in layers for weight in layer.parameters())]


def test_grus_side_by_side_and_their_gradients_equal_torch():
    layers, inputs, by = units(torch.float64)
    found, expected = gru_sequences(layers, inputs), [layer(x)[0] for layer, x in zip(layers, inputs, strict=True)]
    for first, other in zip([*found, *gradients(found, by)], [*expected, *gradients(expected, by)], strict=True):
        torch.testing.assert_close(first, other, rtol=1e-10, atol=1e-12)


def test_grus_under_bfloat16_keep_float32_states_and_stay_close():
    layers, inputs, by = units(torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        found = gru_sequences(layers, inputs)
    expected = [layer(x)[0] for layer, x in zip(layers, inputs, strict=True)]
    assert {tensor.dtype for tensor in found} == {torch.float32}
    for first, other in zip([*found, *gradients(found, by)], [*expected, *gradients(expected, by)], strict=True):
        torch.testing.assert_close(first, other, rtol=0, atol=0.02 * other.abs().max().item())


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


def test_compiled_layers_are_called_while_used_and_not_otherwise(monkeypatch):
    called = []

    def compile_as_is(layer: nn.Module, dynamic: bool) -> None:
        def call(*args):
            called.append(type(layer).__name__)
            return layer._call_impl(*args)

        layer._compiled_call_impl = call

    monkeypatch.setattr(nn.Module, "compile", compile_as_is)
    model, batch = build_model(transformer_config(), (VOCAB, VOCAB)), pairs([5, 3], [4, 6])
    compiled = CompiledLayers(model)
    plain = model.loss(batch, 0.1).loss
    assert not called
    with compiled.used():
        assert torch.equal(model.loss(batch, 0.1).loss, plain)
    assert called == ["EncoderLayer", "EncoderLayer", "DecoderLayer", "DecoderLayer"]
    model.loss(batch, 0.1)
    assert len(called) == 4


@pytest.mark.slow
def test_compiled_loss_and_gradients_equal_those_of_the_layers():
    torch.manual_seed(1)
    model = build_model(transformer_config(), (VOCAB, VOCAB)).train()
    compiled, batches = CompiledLayers(model), [pairs([5, 3, 4], [4, 6, 2]), pairs([7, 9], [8, 3])]
    for layer in compiled.layers:
        layer.compile(dynamic=True, backend="aot_eager")
    compiled.calls = [layer._compiled_call_impl for layer in compiled.layers]
    for layer in compiled.layers:
        layer._compiled_call_impl = None
    weights = [*model.parameters()]
    for batch in batches:
        expected = torch.autograd.grad(model.loss(batch, 0.1).loss, weights)
        with compiled.used():
            found = torch.autograd.grad(model.loss(batch, 0.1).loss, weights)
        for first, other in zip(found, expected, strict=True):
            torch.testing.assert_close(first, other, rtol=1e-4, atol=1e-5)
