"""The ways to multiply matrices: one result, one choice a processor, no trace of it where torch's own way stays."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch
from gradients import with_gradients
from torch import nn

from pipeline.training import matmul_backend
from pipeline.training.machine import describe_machine
from pipeline.training.matmul_backend import (
    TORCH_DEFAULT,
    MatmulBackend,
    choose_backend,
    current_backend,
    onednn_matmul,
    use_backend,
)

BY_ONEDNN, WIDENED = MatmulBackend(products="onednn"), MatmulBackend(widened=True)


@pytest.fixture
def asked(monkeypatch) -> Iterator[list[tuple]]:
    """Let oneDNN multiply matrices, and return what was asked of it."""
    given = []
    monkeypatch.setattr(matmul_backend, "onednn_matmul", lambda *args: given.append(args) or onednn_matmul(*args))
    use_backend(BY_ONEDNN)
    yield given
    use_backend(TORCH_DEFAULT)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_layer_and_gradients_agree_between_mkl_and_onednn(kind, bias, asked):
    torch.manual_seed(1)
    layer, x = nn.Linear(120, 160, bias=bias).to(kind), torch.randn(7, 9, 120, dtype=kind, requires_grad=True)
    leaves = [x, *layer.parameters()]
    found, count = with_gradients([layer(x)], leaves), len(asked)
    use_backend(TORCH_DEFAULT)
    by_mkl = with_gradients([layer(x)], leaves)
    tolerance = 1e-4 if kind == torch.float32 else 0
    torch.testing.assert_close(found, by_mkl, rtol=tolerance, atol=tolerance)
    assert count == len(asked) and (count >= 3 if kind == torch.float32 else not count)


@pytest.fixture
def asked_any_size(asked, monkeypatch) -> list[tuple]:
    """Let oneDNN multiply matrices of any size."""
    monkeypatch.setattr(matmul_backend, "LEAST", 1)
    return asked


@pytest.mark.parametrize("shapes", [((0, 3), (3, 4)), ((2, 0), (0, 4)), ((1, 3), (3, 1)), ((5, 3), (3, 0))])
@pytest.mark.usefixtures("asked_any_size")
def test_empty_and_thin_matrices_are_multiplied_too(shapes):
    a, b = (torch.ones(shape) for shape in shapes)
    assert (a @ b).tolist() == [[float(a.shape[1])] * b.shape[1]] * a.shape[0]
    assert torch.addmm(torch.ones(b.shape[1]), a, b, beta=2, alpha=3).tolist() == (3 * (a @ b) + 2).tolist()


@pytest.mark.parametrize("shape", [(4,), (1,), (2, 4), (2, 1), ()])
def test_onednn_addmm_adds_a_summand_of_any_shape(shape, asked_any_size):
    summand, a, b = torch.randn(shape), torch.randn(2, 3), torch.randn(3, 4)
    found = torch.addmm(summand, a, b)
    assert bool(asked_any_size) == (shape == (4,))
    use_backend(TORCH_DEFAULT)
    torch.testing.assert_close(found, torch.addmm(summand, a, b))


@pytest.mark.parametrize(("left", "right"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(("rows", "columns"), [(9, 2), (2, 9)])
def test_factors_laid_out_by_columns_are_multiplied_as_they_are(left, right, rows, columns):
    a = torch.randn(3, rows).t() if left else torch.randn(rows, 3)
    b = torch.randn(columns, 3).t() if right else torch.randn(3, columns)
    bias = torch.randn(columns)
    torch.testing.assert_close(onednn_matmul(a, b), a @ b)
    torch.testing.assert_close(onednn_matmul(a, b, bias), a @ b + bias)


@pytest.mark.parametrize("right", [False, True])
def test_a_part_of_a_matrix_reaches_onednn_without_gaps(right, monkeypatch):
    """oneDNN does not use its fast kernels for matrices with gaps; they are a thousand times as fast."""
    given = []
    operator = torch.ops.mkldnn._linear_pointwise
    watched = SimpleNamespace(_linear_pointwise=lambda a, b, *more: given.append(b) or operator(a, b, *more))
    monkeypatch.setattr(matmul_backend.torch.ops, "mkldnn", watched)
    a, whole = torch.randn(9, 3), torch.randn(8, 8)
    b = whole[:5, :3].t() if right else whole[:3, :5]
    torch.testing.assert_close(onednn_matmul(a, b), a @ b)
    assert given[0].is_contiguous() or given[0].t().is_contiguous()


def test_small_products_stay_with_mkl(asked):
    assert (torch.ones(32, 64) @ torch.ones(64, 64)).sum() == 32 * 64 * 64 and not asked
    assert (torch.ones(512, 64) @ torch.ones(64, 64)).sum() == 512 * 64 * 64 and len(asked) == 1


@pytest.mark.usefixtures("asked")
def test_the_facts_of_a_machine_name_the_library():
    found = describe_machine(torch.device("cpu"), 1, 1)
    assert (found.products, found.widened) == ("onednn", False) and current_backend() == BY_ONEDNN


def test_the_choice_is_measured_once_and_needs_a_clear_lead(tmp_path, monkeypatch):
    monkeypatch.setattr(matmul_backend, "benchmark", take(own=2.3, onednn=1.0, bfloat16=1.1))
    assert [choose_backend(tmp_path), choose_backend(tmp_path)] == [BY_ONEDNN, BY_ONEDNN]
    monkeypatch.setattr(matmul_backend, "processor", lambda: "another/one")
    monkeypatch.setattr(matmul_backend, "benchmark", take(own=1.2, onednn=1.0, bfloat16=1.6))
    assert [choose_backend(tmp_path), choose_backend(tmp_path)] == [WIDENED, WIDENED]


@pytest.mark.parametrize(("own", "bfloat16", "widened"), [(1.2, 1.5, False), (1.2, 1.6, True), (2.3, 1.4, True)])
def test_bfloat16_is_timed_against_the_chosen_float32_backend(own, bfloat16, widened, tmp_path, monkeypatch):
    monkeypatch.setattr(matmul_backend, "benchmark", take(own, 1.0, bfloat16))
    assert choose_backend(tmp_path).widened == widened


def take(own: float, onednn: float, bfloat16: float):
    """Measured once: a second time fails."""
    times = {
        (torch.mm, torch.float32): own,
        (onednn_matmul, torch.float32): onednn,
        (torch.mm, torch.bfloat16): bfloat16,
    }
    return lambda *ways: [times.pop(way) for way in ways]


def test_backend_cache_path_depends_on_cpu_instructions(tmp_path, monkeypatch):
    found = set()
    for amx in (True, False):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True, "amx_bf16": amx, "sse": True})  # noqa: B023
        found.add(matmul_backend.cache_path(tmp_path).name.removeprefix(matmul_backend.processor().replace("/", " ")))
    assert found == {" amx_bf16 avx512_bf16.json", " avx512_bf16.json"}


def test_a_choice_of_an_older_version_is_measured_again(tmp_path, monkeypatch):
    path = matmul_backend.cache_path(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text('{"format": 1, "library": "onednn"}')
    monkeypatch.setattr(matmul_backend, "benchmark", take(own=1, onednn=1, bfloat16=2))
    assert choose_backend(tmp_path) == WIDENED == MatmulBackend.read_if_valid(path)


def test_torch_default_is_used_if_the_choice_cannot_be_cached(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(matmul_backend, "benchmark", take(own=9, onednn=1, bfloat16=9))
    (tmp_path / "products").touch()
    assert choose_backend(tmp_path) == TORCH_DEFAULT and "torch's default matrix multiplication is used" in caplog.text


def test_faster_backend_is_chosen_by_its_time():
    def slow(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        for _ in range(9):
            a @ b
        return a @ b

    quick, long = matmul_backend.benchmark((torch.mm, torch.float32), (slow, torch.float32))
    assert quick < 0.3 * long
