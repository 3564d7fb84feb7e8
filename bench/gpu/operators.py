"""Time several implementations of single operators, forward and backward, to choose one for training on this GPU.

Sizes are those of Transformer base with 25,000 target positions, and of the Weighted Transformer's eight branches.
"""

from collections.abc import Callable
from dataclasses import dataclass
from unittest import mock

import torch
from agreement import Results
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from pipeline.models.kernels import cross_entropy
from pipeline.models.kernels.operators import weighted_sum
from pipeline.models.layers.loss import smoothed_cross_entropy

SMOOTHING = 0.1
Work = Callable[[], Results]
"""Computes one result and its gradients, and returns both."""


@dataclass(frozen=True)
class Sizes:
    """Rows of a batch, positions of a row, width, heads, vocabulary and branches."""

    rows: int = 834
    length: int = 30
    width: int = 512
    heads: int = 8
    vocabulary: int = 37000
    branches: int = 8


def differentiated(compute: Callable[[], Tensor], inputs: list[Tensor]) -> Work:
    def work() -> Results:
        out = compute()
        gradients = torch.autograd.grad(out, inputs, torch.ones_like(out))
        return {"outputs": [out.detach()], "gradients": gradients}

    return work


def cross_entropies(device: torch.device, sizes: Sizes = Sizes()) -> dict[str, Work]:
    """Linear layer and label-smoothed cross-entropy: fused in one or eight chunks, plain, and torch's own fused form.

    Torch's own form has another smoothing: its mass is spread over all symbols, the target included.
    """
    count = sizes.rows * sizes.length
    features = torch.randn(count, sizes.width, device=device, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.randn(sizes.vocabulary, sizes.width, device=device).mul_(sizes.width**-0.5).requires_grad_()
    targets = torch.randint(sizes.vocabulary, (count,), device=device)

    def fused(chunks: int) -> Tensor:
        rows = -(-count // chunks)
        with mock.patch.object(cross_entropy, "chunk_rows", lambda *_: rows):
            return cross_entropy.projected_cross_entropy(features, weight, None, targets, SMOOTHING)[0]

    def plain() -> Tensor:
        return smoothed_cross_entropy(F.linear(features, weight.bfloat16()), targets, SMOOTHING)[0]

    def of_torch() -> Tensor:
        options = torch.nn.LinearCrossEntropyOptions()
        smoothed = {"reduction": "sum", "label_smoothing": SMOOTHING}
        return F.linear_cross_entropy(features, weight.bfloat16(), targets, options=options, **smoothed)

    forms = {"one chunk": lambda: fused(1), "eight chunks": lambda: fused(8), "plain": plain, "torch's own": of_torch}
    return {f"cross-entropy, {name}": differentiated(form, [features, weight]) for name, form in forms.items()}


def plain_weighted_sum(alpha: Tensor, x: Tensor) -> Tensor:
    return (alpha.view(-1, *[1] * (x.dim() - 1)) * x).sum(0).to(x.dtype)


def weighted_sums(device: torch.device, sizes: Sizes = Sizes()) -> dict[str, Work]:
    """Sum of the branches: the form in use, and one that torch compiles."""
    shape = sizes.branches, sizes.rows, sizes.length, sizes.width
    alpha = torch.rand(sizes.branches, device=device, requires_grad=True)
    x = torch.randn(shape, device=device, dtype=torch.bfloat16, requires_grad=True)
    compiled = torch.compile(plain_weighted_sum) if device.type == "cuda" else plain_weighted_sum
    forms = {"by products": lambda: weighted_sum(alpha, x), "compiled": lambda: compiled(alpha, x)}
    return {f"weighted sum, {name}": differentiated(form, [alpha, x]) for name, form in forms.items()}


def causal_attentions(device: torch.device, sizes: Sizes = Sizes()) -> dict[str, Work]:
    """Causal self-attention by each of torch's kernels."""
    shape = sizes.rows, sizes.heads, sizes.length, sizes.width // sizes.heads
    queries, keys, values = (
        torch.randn(shape, device=device, dtype=torch.bfloat16, requires_grad=True) for _ in range(3)
    )

    def form(backend: SDPBackend) -> Work:
        def compute() -> Tensor:
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(queries, keys, values, is_causal=True)

        return differentiated(compute, [queries, keys, values])

    backends = {
        "flash": SDPBackend.FLASH_ATTENTION,
        "memory-efficient": SDPBackend.EFFICIENT_ATTENTION,
        "cuDNN": SDPBackend.CUDNN_ATTENTION,
        "plain": SDPBackend.MATH,
    }
    return {f"causal attention, {name}": form(backend) for name, backend in backends.items()}


FAMILIES = {
    "operator: cross-entropy": cross_entropies,
    "operator: weighted sum": weighted_sums,
    "operator: causal attention": causal_attentions,
}
