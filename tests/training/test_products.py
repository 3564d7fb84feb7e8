"""The ways to multiply matrices: one result, one choice a processor, no trace of it where torch's own way stays."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from pipeline.training import products
from pipeline.training.machine import facts
from pipeline.training.products import TORCH_OWN, Choice, by_onednn, choose, in_use, lead, multiply_by

BY_ONEDNN, WIDENED = Choice(products="onednn"), Choice(widened=True)


@pytest.fixture
def onednn():
    multiply_by(BY_ONEDNN)
    yield
    multiply_by(TORCH_OWN)


def gradients(layer: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    out = layer(x)
    return [out, *torch.autograd.grad(out.square().sum(), [x, *layer.parameters()])]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_a_layer_and_its_gradients_are_the_same_by_either_library(kind, bias, monkeypatch):
    torch.manual_seed(1)
    layer, x = nn.Linear(120, 160, bias=bias).to(kind), torch.randn(7, 9, 120, dtype=kind, requires_grad=True)
    by_mkl, asked = gradients(layer, x), []
    monkeypatch.setattr(products, "by_onednn", lambda *given: asked.append(len(given)) or by_onednn(*given))
    multiply_by(BY_ONEDNN)
    try:
        found = gradients(layer, x)
    finally:
        multiply_by(TORCH_OWN)
    tolerance = 1e-4 if kind == torch.float32 else 0
    for one, other in zip(found, by_mkl, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)
    assert len(asked) >= 3 if kind == torch.float32 else not asked
    assert gradients(layer, x)[1].equal(by_mkl[1])


@pytest.fixture
def any_size(monkeypatch):
    """Products of any size go to oneDNN; what was asked of it."""
    asked = []
    monkeypatch.setattr(products, "LEAST", 1)
    monkeypatch.setattr(products, "by_onednn", lambda *given: asked.append(given) or by_onednn(*given))
    return asked


@pytest.mark.parametrize("shapes", [((0, 3), (3, 4)), ((2, 0), (0, 4)), ((1, 3), (3, 1)), ((5, 3), (3, 0))])
@pytest.mark.usefixtures("onednn", "any_size")
def test_empty_and_thin_matrices_are_multiplied_too(shapes):
    a, b = (torch.ones(shape) for shape in shapes)
    assert (a @ b).tolist() == [[float(a.shape[1])] * b.shape[1]] * a.shape[0]
    assert torch.addmm(torch.ones(b.shape[1]), a, b, beta=2, alpha=3).tolist() == (3 * (a @ b) + 2).tolist()


@pytest.mark.parametrize("shape", [(4,), (1,), (2, 4), (2, 1), ()])
def test_a_summand_of_any_shape_is_added_as_it_would_be_without_onednn(shape, any_size):
    summand, a, b = torch.randn(shape), torch.randn(2, 3), torch.randn(3, 4)
    expected = torch.addmm(summand, a, b)
    multiply_by(BY_ONEDNN)
    try:
        torch.testing.assert_close(torch.addmm(summand, a, b), expected)
        assert bool(any_size) == (shape == (4,))
    finally:
        multiply_by(TORCH_OWN)


@pytest.mark.parametrize(("left", "right"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(("rows", "columns"), [(9, 2), (2, 9)])
def test_factors_laid_out_by_columns_are_multiplied_as_they_are(left, right, rows, columns):
    a = torch.randn(3, rows).t() if left else torch.randn(rows, 3)
    b = torch.randn(columns, 3).t() if right else torch.randn(3, columns)
    bias = torch.randn(columns)
    torch.testing.assert_close(by_onednn(a, b), a @ b)
    torch.testing.assert_close(by_onednn(a, b, bias), a @ b + bias)


@pytest.mark.parametrize("right", [False, True])
def test_a_part_of_a_matrix_reaches_onednn_without_gaps(right, monkeypatch):
    """Of matrices with gaps its own kernels are not taken, which are a thousand times as fast."""
    given = []
    operator = torch.ops.mkldnn._linear_pointwise
    watched = SimpleNamespace(_linear_pointwise=lambda a, b, *more: given.append(b) or operator(a, b, *more))
    monkeypatch.setattr(products.torch.ops, "mkldnn", watched)
    a, whole = torch.randn(9, 3), torch.randn(8, 8)
    b = whole[:5, :3].t() if right else whole[:3, :5]
    torch.testing.assert_close(by_onednn(a, b), a @ b)
    assert given[0].is_contiguous() or given[0].t().is_contiguous()


@pytest.mark.usefixtures("onednn")
def test_small_products_stay_with_mkl(monkeypatch):
    asked = []
    monkeypatch.setattr(products, "by_onednn", lambda *given: asked.append(given) or by_onednn(*given))
    assert (torch.ones(32, 64) @ torch.ones(64, 64)).sum() == 32 * 64 * 64 and not asked
    assert (torch.ones(512, 64) @ torch.ones(64, 64)).sum() == 512 * 64 * 64 and len(asked) == 1


@pytest.mark.usefixtures("onednn")
def test_the_facts_of_a_machine_name_the_library():
    found = facts(torch.device("cpu"), 1, 1)
    assert (found.products, found.widened) == ("onednn", False) and in_use() == BY_ONEDNN


def bfloat16(*shape: int) -> torch.Tensor:
    return torch.randn(shape).bfloat16()


PRODUCTS = {
    "mm": lambda: (torch.mm, bfloat16(64, 128), bfloat16(128, 160)),
    "mm of columns": lambda: (torch.mm, bfloat16(128, 64).t(), bfloat16(160, 128).t()),
    "addmm": lambda: (torch.addmm, bfloat16(160), bfloat16(64, 128), bfloat16(128, 160)),
    "addmm of a column": lambda: (torch.addmm, bfloat16(64, 1), bfloat16(64, 128), bfloat16(128, 160)),
    "bmm": lambda: (torch.bmm, bfloat16(3, 64, 128), bfloat16(3, 128, 160)),
    "baddbmm": lambda: (torch.baddbmm, bfloat16(3, 1, 160), bfloat16(3, 64, 128), bfloat16(3, 128, 160)),
}


@pytest.mark.parametrize("library", ["mkl", "onednn"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_widened_products_are_those_of_double_precision_rounded_once(name, library, monkeypatch):
    torch.manual_seed(1)
    operator, *given = PRODUCTS[name]()
    scales = {"beta": 2, "alpha": 3} if "add" in name else {}
    exact, asked = operator(*(one.double() for one in given), **scales), []
    widen = products.by_widening
    monkeypatch.setattr(products, "by_widening", lambda *one, **more: asked.append(one) or widen(*one, **more))
    multiply_by(Choice(products=library, widened=True))
    try:
        found = operator(*given, **scales)
    finally:
        multiply_by(TORCH_OWN)
    assert found.dtype == torch.bfloat16 and len(asked) == 1
    # half a unit in the last of eight digits, and what 128 sums in float32 lose where they cancel
    torch.testing.assert_close(found.double(), exact, rtol=2**-8, atol=1e-4)


def test_a_layer_under_autocast_has_the_gradients_of_single_precision_within_those_of_bfloat16(monkeypatch):
    torch.manual_seed(1)
    layer, x = nn.Linear(120, 160), torch.randn(9, 9, 120, requires_grad=True)
    single, asked = gradients(layer, x), []
    widen = products.by_widening
    monkeypatch.setattr(products, "by_widening", lambda *one, **more: asked.append(one) or widen(*one, **more))
    multiply_by(WIDENED)
    try:
        with torch.autocast("cpu", torch.bfloat16):
            out = layer(x)
        found = [out.float(), *torch.autograd.grad(out.float().square().sum(), [x, *layer.parameters()])]
    finally:
        multiply_by(TORCH_OWN)
    assert len(asked) == 3 and out.dtype == torch.bfloat16
    for one, other in zip(found, single, strict=True):
        assert (one - other).abs().max() < 0.02 * other.abs().max()


def test_widening_leaves_small_products_and_those_of_other_kinds_alone(monkeypatch):
    monkeypatch.setattr(products, "by_widening", lambda *given, **scales: pytest.fail("was widened"))
    multiply_by(WIDENED)
    try:
        assert torch.ones(512, 64).mm(torch.ones(64, 64)).sum() == 512 * 64 * 64
        assert bfloat16(32, 64).mm(bfloat16(64, 64)).dtype == torch.bfloat16
        assert torch.ones(4, 512, 64).bmm(torch.ones(4, 64, 64)).sum() == 4 * 512 * 64 * 64
    finally:
        multiply_by(TORCH_OWN)


def test_the_choice_is_measured_once_and_needs_a_clear_lead(tmp_path, monkeypatch):
    monkeypatch.setattr(products, "lead", leads(onednn=2.3, widening=1.1))
    assert [choose(tmp_path), choose(tmp_path)] == [BY_ONEDNN, BY_ONEDNN]
    monkeypatch.setattr(products, "processor", lambda: "another/one")
    monkeypatch.setattr(products, "lead", leads(onednn=1.2, widening=1.6))
    assert [choose(tmp_path), choose(tmp_path)] == [WIDENED, WIDENED]


def leads(onednn: float, widening: float):
    """Measured once: a second time fails."""
    left = {torch.float32: onednn, torch.bfloat16: widening}
    return lambda _, kind: left.pop(kind)


def test_processors_of_one_name_have_a_choice_each_where_their_instructions_differ(tmp_path, monkeypatch):
    found = set()
    for amx in (True, False):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True, "amx_bf16": amx, "sse": True})  # noqa: B023
        found.add(products.remembered(tmp_path).name.removeprefix(products.processor().replace("/", " ")))
    assert found == {" amx_bf16 avx512_bf16.json", " avx512_bf16.json"}


def test_a_choice_of_an_older_version_is_measured_again(tmp_path, monkeypatch):
    path = products.remembered(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text('{"format": 1, "library": "onednn"}')
    monkeypatch.setattr(products, "lead", leads(onednn=1, widening=2))
    assert choose(tmp_path) == WIDENED == products.read_note(Choice, path)


def test_torch_multiplies_as_it_does_where_a_choice_cannot_be_remembered(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(products, "lead", lambda *_: 9.0)
    (tmp_path / "products").touch()
    assert choose(tmp_path) == TORCH_OWN and "matrices are multiplied as torch does" in caplog.text


def test_the_faster_of_two_is_told_by_its_time():
    def slow(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        for _ in range(9):
            a @ b
        return a @ b

    assert lead(slow, torch.float32) < 0.3
