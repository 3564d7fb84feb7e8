"""The two libraries that multiply matrices: one result, one choice a processor, no trace of it where MKL stays."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from pipeline.training import products
from pipeline.training.machine import facts
from pipeline.training.products import by_onednn, choose, lead, multiply_by


@pytest.fixture
def onednn():
    multiply_by("onednn")
    yield
    multiply_by("mkl")


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
    multiply_by("onednn")
    try:
        found = gradients(layer, x)
    finally:
        multiply_by("mkl")
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
    multiply_by("onednn")
    try:
        torch.testing.assert_close(torch.addmm(summand, a, b), expected)
        assert bool(any_size) == (shape == (4,))
    finally:
        multiply_by("mkl")


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
    assert facts(torch.device("cpu"), 1, 1).products == "onednn"


def test_the_choice_is_measured_once_and_needs_a_clear_lead(tmp_path, monkeypatch):
    measured = iter([2.3, 1.2])
    monkeypatch.setattr(products, "lead", lambda: next(measured))
    assert [choose(tmp_path), choose(tmp_path)] == ["onednn", "onednn"]
    monkeypatch.setattr(products, "processor", lambda: "another/one")
    assert [choose(tmp_path), choose(tmp_path)] == ["mkl", "mkl"]


def test_mkl_multiplies_where_a_choice_cannot_be_remembered(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(products, "lead", lambda: 9.0)
    (tmp_path / "products").touch()
    assert choose(tmp_path) == "mkl" and "matrices are multiplied by MKL" in caplog.text


def test_the_faster_of_two_is_told_by_its_time(monkeypatch):
    def slow(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        for _ in range(9):
            a @ b
        return a @ b

    monkeypatch.setattr(products, "by_onednn", slow)
    assert lead() < 0.3
