import pytest
import torch

from pipeline.models.kernels import cross_entropy
from pipeline.models.layers.loss import projected_cross_entropy


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def naive(features, weight, bias, targets, smoothing):
    """-sum_v q(v) log p(v), q = 1 - eps on the target and eps / (V - 1) on the others."""
    log_probs = torch.nn.functional.linear(features, weight, bias).log_softmax(-1)
    spread = torch.full_like(log_probs, smoothing / (len(weight) - 1))
    target = spread.scatter(1, targets.unsqueeze(1), 1 - smoothing)
    return -(target * log_probs).sum(), -log_probs.gather(1, targets.unsqueeze(1)).sum()


def example(rows=37, width=12, vocab=50, dtype=torch.float32):
    features, weight, bias = torch.randn(rows, width), torch.randn(vocab, width), torch.randn(vocab)
    return *(x.to(dtype).requires_grad_() for x in (features, weight, bias)), torch.randint(vocab, (rows,))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("chunk_rows", [1, 5, 100])
def test_value_and_gradient_equal_the_formula(smoothing, with_bias, chunk_rows, monkeypatch):
    monkeypatch.setattr(cross_entropy, "CHUNK_LOGITS", 50 * chunk_rows)
    features, weight, bias, targets = example()
    inputs = [features, weight, *([bias] if with_bias else [])]
    ours = projected_cross_entropy(features, weight, bias if with_bias else None, targets, smoothing)
    expected = naive(features, weight, bias if with_bias else None, targets, smoothing)
    torch.testing.assert_close(ours[0], expected[0], rtol=1e-5, atol=0)
    torch.testing.assert_close(ours[1], expected[1], rtol=1e-5, atol=0)
    assert not ours[1].requires_grad
    pairs = zip(torch.autograd.grad(3 * ours[0], inputs), torch.autograd.grad(3 * expected[0], inputs), strict=True)
    for gradient, by_formula in pairs:
        torch.testing.assert_close(gradient, by_formula, rtol=1e-4, atol=1e-4)


def test_loss_without_smoothing_is_cross_entropy():
    features, weight, bias, targets = example()
    loss, nll = projected_cross_entropy(features, weight, bias, targets, 0.0)
    expected = torch.nn.functional.cross_entropy(features @ weight.T + bias, targets, reduction="sum")
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(nll, expected)


def test_bfloat16_autocast_stays_near_float32():
    features, weight, _, targets = example(rows=200, width=64, vocab=300)
    expected = naive(features, weight, None, targets, 0.1)[0]
    with torch.autocast("cpu", torch.bfloat16):
        loss, _ = projected_cross_entropy(features, weight, None, targets, 0.1)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, expected, rtol=5e-3, atol=0)
    ours, reference = (torch.autograd.grad(value, [features, weight]) for value in (loss, expected))
    for gradient, by_formula in zip(ours, reference, strict=True):
        assert gradient.dtype == torch.float32
        assert (gradient - by_formula).norm() < 0.02 * by_formula.norm()


def test_no_gradient_is_computed_without_grad_mode():
    features, weight, bias, targets = example()
    with torch.no_grad():
        loss, nll = projected_cross_entropy(features, weight, bias, targets, 0.1)
    assert not loss.requires_grad
    torch.testing.assert_close(loss, naive(features, weight, bias, targets, 0.1)[0], rtol=1e-5, atol=0)
    with torch.inference_mode():
        assert projected_cross_entropy(features, weight, bias, targets, 0.1)[1].equal(nll)


def test_loss_of_no_rows_is_zero():
    features, weight, bias, targets = example(rows=0)
    loss, nll = projected_cross_entropy(features, weight, bias, targets, 0.1)
    loss.backward()
    assert loss.item() == nll.item() == 0 and not weight.grad.any()
