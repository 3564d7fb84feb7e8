"""Products of matrices on a CPU by the faster of the ways inside torch.

float32: torch takes MKL, which on processors of other makers than its own may need twice as long as oneDNN. bfloat16:
without instructions for it they take 45 times as long as float32, with them sometimes 1.7 times. Then factors are
widened and the product is rounded, as such instructions do, too; only the order of sums differs. What is faster is
measured once for a kind of processor and remembered in the user's cache; `Machine` names it.
"""

import logging
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from pipeline.errors import UserError
from pipeline.provenance import processor
from pipeline.records.record import Record, read_note
from pipeline.records.training import Products

log = logging.getLogger(__name__)
Multiply = Callable[..., Tensor]
WORTH, WORTH_WIDENING = 1.5, 1.3  # times as fast as torch's own way: more than a busy machine can feign
LEAST = 1 << 20  # multiply-adds: for fewer the detour takes longer than they do
ROUNDS, ROWS, WIDTH = 5, 512, 256


class Choice(Products, Record):
    """`products/<torch>/<processor>.json` of the cache."""


TORCH_OWN = Choice()
installed: list[tuple[Choice, torch.library.Library]] = []


def choose(folder: Path) -> Choice:
    """What was found on a processor of this kind, or is now; torch's own where that can't be remembered."""
    path = remembered(folder)
    if (before := read_note(Choice, path)) is None:
        before = Choice(
            products="onednn" if lead(by_onednn, torch.float32) >= WORTH else "mkl",
            widened=lead(by_widening, torch.bfloat16) >= WORTH_WIDENING,
        )
        try:
            before.write(path)
        except UserError as error:
            log.warning("%s: matrices are multiplied as torch does", error)
            return TORCH_OWN
    return before


def remembered(folder: Path) -> Path:
    """Where the choice for this kind of processor lies: some of a kind's names say nothing of its instructions."""
    own = sorted(name for name, has in torch.cpu.get_capabilities().items() if has and "bf16" in name)
    return folder / "products" / torch.__version__ / f"{' '.join([processor().replace('/', ' '), *own])}.json"


def in_use() -> Choice:
    """What multiplies now."""
    return installed[0][0] if installed else TORCH_OWN


def lead(other: Multiply, kind: torch.dtype) -> float:
    """Processor time of torch's own way over that of another, of a linear layer's products forward and backward."""
    x, weight, grad = (torch.ones(rows, WIDTH, dtype=kind) for rows in (ROWS, WIDTH, ROWS))
    seconds: dict[Multiply, float] = {torch.mm: torch.inf, other: torch.inf}
    for _ in range(ROUNDS):
        for multiply in seconds:
            began = time.thread_time()
            for pair in ((x, weight.t()), (grad, weight), (grad.t(), x)):
                multiply(*pair)
            seconds[multiply] = min(seconds[multiply], time.thread_time() - began)
    return seconds[torch.mm] / seconds[other]


def by_widening(*factors: Tensor, operator: Multiply = torch.mm, **scales: float) -> Tensor:
    """The product of bfloat16 matrices, in float32 and rounded."""
    return operator(*(factor.float() for factor in factors), **scales).bfloat16()


def by_onednn(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """a b + bias. A left factor not laid out by rows is copied: of two such, the smaller becomes the left. So is a part
    of a matrix on the right: oneDNN's kernels for one with gaps need a thousand times as long."""
    if a.stride(-1) != 1 and b.stride(0) != 1 and b.numel() < a.numel() and bias is None:
        return by_onednn(b.t(), a.t()).t()
    dense = b if b.is_contiguous() or b.t().is_contiguous() else b.contiguous()
    return torch.ops.mkldnn._linear_pointwise(a, dense.t(), bias, "none", [], "")


def multiply_by(choice: Choice) -> None:
    """Have `choice` do the products of matrices on the CPU, those of backward passes too: of float32 every `mm` and
    `addmm`, of bfloat16 also batches of them."""
    while installed:
        installed.pop()[1]._destroy()
    if choice == TORCH_OWN:
        return
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    installed.append((choice, torch.library.Library("aten", "IMPL")))
    for name in ("mm", "addmm", "bmm", "baddbmm") if choice.widened else ("mm", "addmm"):
        kernel = torch.library.get_kernel(f"aten::{name}", "CPU")
        with warnings.catch_warnings(action="ignore"):  # that it overrides a kernel is what it is for
            installed[0][1].impl(name, override(choice, name, partial(kernel.call_boxed, keys)), "CPU")


def override(choice: Choice, name: str, usual: Multiply) -> Multiply:
    """What is done instead of torch's operator; to it are left small products, and those that `choice` is not about."""

    def multiply(*given: Tensor, **scales: float) -> Tensor:
        *summand, a, b = given
        large = a.numel() * b.shape[-1] >= LEAST
        if large and choice.widened and a.dtype == torch.bfloat16:
            return by_widening(*given, operator=getattr(torch, name), **scales)
        plain = all(row.shape == b.shape[1:] and row.is_contiguous() for row in summand) and set(scales.values()) <= {1}
        if large and choice.products == "onednn" and a.dtype == torch.float32 and a.dim() == 2 and plain:
            return by_onednn(a, b, *summand)
        return usual(*given, **scales)

    return multiply
