"""Triton kernels give values and gradients of torch's operators, in Triton's interpreter if there is no GPU."""

import math
import os
import sys
from collections.abc import Callable
from unittest import mock

import pytest
import torch
from gradients import loss_and_gradients
from small_models import LITERAL, VOCAB, pairs, transformer_config, weighted_config
from torch import Tensor
from torch.nn import functional as F

from pipeline.core.errors import UserError
from pipeline.models import kernels
from pipeline.models.architectures import build_model
from pipeline.models.kernels import cross_entropy, fused_dropout, gpu, relu_layers, short_attention
from pipeline.models.kernels.autocast import Norm, Projection
from pipeline.models.kernels.short_attention import Heads
from pipeline.models.transformer import layers, multi_head_attention
from pipeline.models.weighted_transformer import model as weighted_model

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is defined
needs_triton = pytest.mark.skipif(not gpu.find_spec("triton"), reason="Triton is not installed")
CLOSE = {"rtol": 1e-4, "atol": 1e-5}
BF16 = 2**-7
"""Largest error of bfloat16, relative to the norm of a tensor; a number has 8 significant bits."""
in_both_precisions = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])


@pytest.fixture(autouse=True)
def exact_dot(monkeypatch) -> None:
    """Let Triton's interpreter multiply bfloat16 matrices, whose bits it would take for integers."""
    if DEVICE == "cuda" or not gpu.find_spec("triton"):
        return
    from triton import language as tl
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    create_dot = InterpreterBuilder.create_dot

    def widened(x: TensorHandle) -> TensorHandle:
        is_bf16 = x.dtype.scalar.is_bf16()
        return TensorHandle((x.data.astype("uint32") << 16).view("float32"), tl.float32) if is_bf16 else x

    monkeypatch.setattr(
        InterpreterBuilder, "create_dot", lambda self, a, b, *rest: create_dot(self, widened(a), widened(b), *rest)
    )


def randn(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, device=DEVICE).to(dtype).requires_grad_()


def assert_close(found: Tensor, expected: Tensor, dtype: torch.dtype) -> None:
    """Check a result of computing in `dtype` against the expected one in float32."""
    if dtype == torch.bfloat16:
        assert torch.dist(found.float(), expected) <= BF16 * expected.norm()
    else:
        torch.testing.assert_close(found, expected, **CLOSE)


def assert_same(found: Callable[..., Tensor], expected: Callable[..., Tensor], inputs: list[Tensor]) -> None:
    """Check that a function gives the values and gradients that another one has in float32."""
    wide = [x.detach().float().requires_grad_() for x in inputs]
    dtype = min((x.dtype for x in inputs), key=lambda dtype: dtype.itemsize)
    ours, theirs = found(*inputs), expected(*wide)
    assert_close(ours, theirs, dtype)
    grad = torch.randn_like(ours)
    gradients = torch.autograd.grad(ours, inputs, grad), torch.autograd.grad(theirs, wide, grad.float())
    for x, own, other in zip(inputs, *gradients, strict=True):
        assert own.dtype == x.dtype
        assert_close(own, other, dtype)


def padding(rows: int, keys: int) -> Tensor:
    """Return a bias that hides the last keys of the first sentence, with aligned rows."""
    bias = torch.zeros(rows, 1, 1, keys + -keys % 8, device=DEVICE)[..., :keys]
    bias[0, ..., keys // 2 :] = -math.inf
    return bias


def plain_attention(tensors: list[Tensor], mask: Tensor | None, heads: Heads, causal: bool = False) -> Tensor:
    split = [x.unflatten(-1, (heads.number, -1)).transpose(1, 2) for x in tensors]
    if causal:
        ahead = torch.full((split[0].shape[2],) * 2, -math.inf, device=DEVICE).triu(1)
        mask = ahead if mask is None else mask + ahead
    return F.scaled_dot_product_attention(*split, mask).transpose(1, 2).flatten(2)


@needs_triton
@in_both_precisions
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("length", "heads"), [(7, Heads(2, 16, 32)), (33, Heads(1, 32, 16))])
def test_self_attention_of_a_joint_projection(length, heads, causal, masked, dtype):
    torch.manual_seed(1)
    widths = [heads.number * width for width in (heads.key_width, heads.key_width, heads.value_width)]
    mask = padding(3, length) if masked else None
    assert_same(
        lambda x: short_attention.attend(None, x, mask, heads, causal, 0.0),
        lambda x: plain_attention(list(x.split(widths, -1)), mask, heads, causal),
        [randn(3, length, sum(widths), dtype=dtype)],
    )


@needs_triton
@in_both_precisions
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("targets", "keys"), [(30, 19), (5, 64)])
def test_cross_attention_of_a_joint_projection(targets, keys, masked, dtype):
    torch.manual_seed(2)
    heads, mask = Heads(2, 16, 32), padding(3, keys) if masked else None
    assert_same(
        lambda q, kv: short_attention.attend(q, kv, mask, heads, False, 0.0),
        lambda q, kv: plain_attention([q, *kv.split([32, 64], -1)], mask, heads),
        [randn(3, targets, 32, dtype=dtype), randn(3, keys, 96, dtype=dtype)],
    )


def drawn_mask(kept: Callable[[], Tensor], rate: float) -> Tensor:
    """Return the mask of seed 3, after checking that masks follow the seed and keep the right share."""
    masks = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        masks.append(kept())
    assert torch.equal(masks[0], masks[1]) and not torch.equal(masks[0], masks[2])
    assert float(masks[0].float().mean()) == pytest.approx(1 - rate, abs=5 * math.sqrt(rate / masks[0].numel()))
    return masks[0]


@pytest.mark.parametrize(("rows", "longest", "width"), [(65535, 64, 64), (65536, 64, 64), (9, 65, 64), (9, 64, 48)])
def test_short_attention_suits_what_a_launch_can_hold(monkeypatch, rows, longest, width):
    monkeypatch.setattr(short_attention, "fused", lambda x: True)
    projected = torch.empty(1, 1, 1).expand(rows, 1, 1)
    fits = (rows, longest, width) == (65535, 64, 64)
    assert short_attention.suits(projected, longest, Heads(8, width, 64)) is fits


@needs_triton
def test_attention_drops_weights_by_the_seed():
    heads, length, rate = Heads(2, 16, 32), 20, 0.25
    identity = torch.eye(length, 32, device=DEVICE).repeat(1, 2).expand(5, -1, -1)
    x = randn(5, length, 128)

    def dropped(x: Tensor) -> Tensor:
        torch.manual_seed(3)
        return short_attention.attend(None, x, None, heads, False, rate)

    def kept() -> Tensor:
        values = torch.cat((x[..., :64], identity), -1).detach()
        found = short_attention.attend(None, values, None, heads, False, rate)
        return found.unflatten(-1, (2, -1)).transpose(1, 2)[..., :length] > 0

    mask = drawn_mask(kept, rate)

    def plain(x: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in x.split([32, 32, 64], -1))
        weights = (q @ k.transpose(-1, -2) / 4).softmax(-1) * mask / (1 - rate)
        return (weights @ v).transpose(1, 2).flatten(2)

    assert_same(dropped, plain, [x])


@needs_triton
@in_both_precisions
@pytest.mark.parametrize("shape", [(5, 13, 64), (3, 5, 13, 64)])
def test_residual_norm_adds_and_normalises(shape, dtype):
    torch.manual_seed(5)
    assert_same(
        lambda x, y, w, b: fused_dropout.residual_norm(x, y, w, b, 1e-6, 0.0),
        lambda x, y, w, b: F.layer_norm(x + y, (64,), w, b, 1e-6),
        [randn(*sizes, dtype=dtype) for sizes in ((5, 13, 64), shape, (64,), (64,))],
    )


@needs_triton
def test_residual_norm_drops_outputs_by_the_seed():
    rate, ones, zeros = 0.3, torch.ones(5, 13, 64, device=DEVICE), torch.zeros(64, device=DEVICE)
    mask = drawn_mask(lambda: fused_dropout.residual_norm(0 * ones, ones, zeros + 1, zeros, 1e-6, rate) > 0, rate)

    def dropped(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        torch.manual_seed(3)
        return fused_dropout.residual_norm(x, y, weight, bias, 1e-6, rate)

    def plain(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.layer_norm(x + y * mask / (1 - rate), (64,), weight, bias, 1e-6)

    assert_same(dropped, plain, [randn(5, 13, 64), randn(5, 13, 64), randn(64), randn(64)])


@pytest.fixture
def relu_epilogue(monkeypatch):
    """Replace torch's `_addmm_activation`, which has no ReLU on a CPU."""
    if DEVICE == "cpu":
        monkeypatch.setattr(torch, "_addmm_activation", lambda bias, x, weight: torch.addmm(bias, x, weight).relu())


@needs_triton
@in_both_precisions
def test_relu_network_passes_both_gradients(relu_epilogue, dtype):
    torch.manual_seed(8)

    def plain(x: Tensor, *weights: Tensor) -> Tensor:
        return 2 * x + F.linear(F.relu(F.linear(x, *weights[:2])), *weights[2:])

    def ours(*inputs: Tensor) -> Tensor:
        skip, out = relu_layers.relu_network(*inputs)
        return 2 * skip + out

    shapes = (7, 20, 24), (600, 24), (600,), (24, 600), (24,)
    assert_same(ours, plain, [randn(*shape, dtype=dtype) for shape in shapes])


@needs_triton
@in_both_precisions
def test_branches_are_summed_behind_the_relu(relu_epilogue, dtype):
    torch.manual_seed(9)
    weights = [randn(*shape, dtype=dtype).detach().float().requires_grad_() for shape in ((600, 16), (600,))]
    assert_same(
        relu_layers.summed_branches,
        lambda x, weight, bias, alpha: torch.einsum("m,mnf->nf", alpha, F.relu(F.linear(x, weight, bias))),
        [randn(3, 150, 16, dtype=dtype), *weights, torch.rand(3, device=DEVICE, requires_grad=True)],
    )


@needs_triton
@in_both_precisions
def test_weighted_sum_of_branches(dtype):
    torch.manual_seed(10)
    assert_same(
        relu_layers.weighted_sum,
        lambda alpha, x: torch.einsum("m,mbtf->btf", alpha, x),
        [randn(3), randn(3, 4, 50, 24, dtype=dtype)],
    )


@needs_triton
@in_both_precisions
def test_rows_of_a_matrix_are_summed(dtype):
    x = randn(700, 600, dtype=dtype).detach()
    torch.testing.assert_close(relu_layers.sum_rows(x), x.double().sum(0).float(), **CLOSE)


@needs_triton
@in_both_precisions
@pytest.mark.parametrize("vocabulary", [5, 9000])
def test_softmax_replaces_scores_in_place(vocabulary, dtype):
    scores = (4 * randn(6, vocabulary, dtype=dtype)).detach()
    expected, partitions = scores.double().softmax(1).float(), scores.double().logsumexp(1, keepdim=True).float()
    assert_close(cross_entropy.softmax_(scores), partitions, dtype)
    assert_close(scores, expected, dtype)


def plain_embedding(weight: Tensor, tokens: Tensor, positions: Tensor) -> Tensor:
    return F.embedding(tokens, weight) * 8 + positions


@needs_triton
@pytest.mark.parametrize("positions", [1, 13])
def test_embedding_adds_positions(monkeypatch, positions):
    torch.manual_seed(12)
    tokens, encodings = torch.randint(29, (5, 13), device=DEVICE), randn(positions, 64).detach()

    def ours(weight: Tensor) -> Tensor:
        return fused_dropout.embed(weight, tokens, encodings, 8.0, 0.0)

    assert_same(ours, lambda weight: plain_embedding(weight, tokens, encodings), [randn(29, 64)])
    monkeypatch.setattr(fused_dropout, "output_dtype", lambda weight: torch.bfloat16)
    weight = randn(29, 64)
    expected, grad = plain_embedding(weight, tokens, encodings), randn(5, 13, 64, dtype=torch.bfloat16).detach()
    assert_close(ours(weight), expected, torch.bfloat16)
    found = (torch.autograd.grad(out, weight, grad.to(out.dtype))[0] for out in (ours(weight), expected))
    assert torch.equal(*found)


@needs_triton
def test_embedding_drops_elements_by_the_seed():
    rate, tokens = 0.3, torch.randint(29, (5, 13), device=DEVICE)
    weight, encodings = randn(29, 64), randn(13, 64).detach()
    mask = drawn_mask(lambda: fused_dropout.embed(weight, tokens, encodings, 8.0, rate) != 0, rate)

    def dropped(weight: Tensor) -> Tensor:
        torch.manual_seed(3)
        return fused_dropout.embed(weight, tokens, encodings, 8.0, rate)

    def expected(weight: Tensor) -> Tensor:
        return plain_embedding(weight, tokens, encodings) * mask / (1 - rate)

    assert_same(dropped, expected, [weight])


USERS = (cross_entropy, fused_dropout, layers, short_attention, weighted_model)
"""Modules that choose between kernels."""


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize(
    "config",
    [
        transformer_config(d_model=64, d_ff=96),
        transformer_config(d_model=64, d_ff=96, decoder_order="self-ffn-cross"),
        weighted_config(d_model=64, d_ff=96, **LITERAL),
        weighted_config(d_model=64, d_ff=96),
    ],
)
def test_models_compute_the_same_by_triton_kernels(monkeypatch, relu_epilogue, config):
    torch.manual_seed(11)
    built, batch = build_model(config, (VOCAB, VOCAB)).to(DEVICE), pairs([5, 9, 3], [7, 2, 8]).to(DEVICE)
    cast = [module for module in built.modules() if isinstance(module, Projection | Norm)]

    def computed(by_triton: bool) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        for user in USERS:
            monkeypatch.setattr(user, "fused", lambda *_: by_triton)
        for module in cast:
            monkeypatch.setattr(module, "cast_weights", (module.weight, module.bias) if by_triton else None)
        sums, gradients = loss_and_gradients(built, lambda: built.loss(batch, 0.1))
        return sums.loss, sums.nll, gradients

    expected = computed(by_triton=False)
    plain_mask = multi_head_attention.attention_mask

    def bias(*args) -> Tensor:
        return torch.zeros(3, 1, 1, 9, device=DEVICE).masked_fill_(~plain_mask(*args), -math.inf)

    monkeypatch.setattr(multi_head_attention, "attention_mask", bias if DEVICE == "cpu" else plain_mask)
    torch.testing.assert_close(computed(by_triton=True), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("load", "name"), [(kernels.programs, "triton_programs"), (kernels.programs_of_attention, "attention_programs")]
)
def test_programs_are_those_of_their_module(load, name):
    """Also where Triton is not installed: a stand-in is imported."""
    with mock.patch.dict(sys.modules, {"triton": mock.MagicMock(), "triton.language": mock.MagicMock()}):
        assert load().__name__ == f"{kernels.__name__}.{name}"
    vars(kernels).pop(name)


@pytest.mark.parametrize(("text", "asked"), [(None, False), ("0", False), ("1", True)])
def test_triton_kernels_run_only_if_asked_for(monkeypatch, text, asked):
    monkeypatch.delenv(kernels.TRITON_SWITCH, raising=False)
    if text:
        monkeypatch.setenv(kernels.TRITON_SWITCH, text)
    assert kernels.triton_asked_for.__wrapped__() is asked
    assert not gpu.fused(torch.zeros(2, dtype=torch.bfloat16))


@pytest.mark.parametrize("text", ["", "true", "2"])
def test_an_unknown_wish_for_triton_kernels_is_an_error(monkeypatch, text):
    monkeypatch.setenv(kernels.TRITON_SWITCH, text)
    with pytest.raises(
        UserError, match=f"^{kernels.TRITON_SWITCH}={text}: set 1 to compute by Triton kernels on a GPU, or 0 "
    ):
        kernels.triton_asked_for.__wrapped__()


@pytest.mark.parametrize(
    ("cuda", "is_installed", "message"),
    [
        (None, True, "needs a build of torch for CUDA: torch's kernels are used"),
        ("13.0", False, "needs Triton, which is not installed: torch's kernels are used"),
        ("13.0", True, "Triton cannot compile kernels, torch's are used: RuntimeError: no C compiler"),
    ],
)
def test_absent_triton_is_logged_and_torch_computes(monkeypatch, caplog, cuda, is_installed, message):
    monkeypatch.setattr(gpu, "find_spec", lambda name: is_installed or None)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch, "ones", lambda *shape, device: torch.zeros(*shape))
    monkeypatch.setattr(relu_layers, "sum_rows", mock.Mock(side_effect=RuntimeError("no C compiler\nmore")))
    assert not gpu.triton_runs.__wrapped__()
    assert message in caplog.text
