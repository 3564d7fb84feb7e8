"""Products of matrices on a CPU by the faster of the ways inside torch.

float32: torch takes MKL, which on processors of other makers than its own may need twice as long as oneDNN. bfloat16:
without instructions for it products take 45 times as long as in float32, with them sometimes 1.7 times; what asks for
bfloat16 is computed in float32 there. What is faster is measured once for a kind of processor and remembered in the
user's cache; `Machine` names it.
"""

import logging
import math
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from pipeline.core.errors import UserError
from pipeline.core.provenance import processor
from pipeline.core.records.record import Record, read_note
from pipeline.core.records.training import MatmulSettings

log = logging.getLogger(__name__)
Multiply = Callable[..., Tensor]
WORTH, WORTH_WIDENING = 1.5, 1.3  # times as fast: more than a busy machine can feign
LEAST = 1 << 20  # multiply-adds: for fewer the way to oneDNN takes longer than they do
ROUNDS, ROWS, WIDTH = 5, 512, 256


class Choice(MatmulSettings, Record):
    """`products/<torch>/<processor>.json` of the cache."""


TORCH_OWN = Choice()
installed: list[tuple[Choice, torch.library.Library]] = []


def choose(folder: Path) -> Choice:
    """What was found on a processor of this kind, or is now; torch's own where that can't be remembered."""
    path = remembered(folder)
    if (before := read_note(Choice, path)) is None:
        own, other, narrow = seconds((torch.mm, torch.float32), (by_onednn, torch.float32), (torch.mm, torch.bfloat16))
        leads = own >= WORTH * other
        widened = narrow >= WORTH_WIDENING * (other if leads else own)
        before = Choice(products="onednn" if leads else "mkl", widened=widened)
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


def seconds(*ways: tuple[Multiply, torch.dtype]) -> list[float]:
    """Least processor time that each way takes for a linear layer's products, forward and backward."""
    least = [math.inf] * len(ways)
    for _ in range(ROUNDS):
        for i, (multiply, kind) in enumerate(ways):
            x, weight, grad = (torch.ones(rows, WIDTH, dtype=kind) for rows in (ROWS, WIDTH, ROWS))
            began = time.thread_time()
            for pair in ((x, weight.t()), (grad, weight), (grad.t(), x)):
                multiply(*pair)
            least[i] = min(least[i], time.thread_time() - began)
    return least


def by_onednn(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """a b + bias. A left factor not laid out by rows is copied: of two such, the smaller becomes the left. So is a part
    of a matrix on the right: oneDNN's kernels for one with gaps need a thousand times as long."""
    if a.stride(-1) != 1 and b.stride(0) != 1 and b.numel() < a.numel() and bias is None:
        return by_onednn(b.t(), a.t()).t()
    dense = b if b.is_contiguous() or b.t().is_contiguous() else b.contiguous()
    return torch.ops.mkldnn._linear_pointwise(a, dense.t(), bias, "none", [], "")


def multiply_by(choice: Choice) -> None:
    """Have `choice` do the products of float32 matrices on the CPU, those of backward passes too."""
    while installed:
        installed.pop()[1]._destroy()
    if choice == TORCH_OWN:
        return
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    installed.append((choice, torch.library.Library("aten", "IMPL")))
    for name in ("mm", "addmm") if choice.products == "onednn" else ():
        kernel = torch.library.get_kernel(f"aten::{name}", "CPU")
        with warnings.catch_warnings(action="ignore"):  # that it overrides a kernel is what it is for
            installed[0][1].impl(name, by_onednn_or(partial(kernel.call_boxed, keys)), "CPU")


def by_onednn_or(usual: Multiply) -> Multiply:
    """What is done instead of torch's operator, to which small products and those of other kinds are left."""

    def multiply(*given: Tensor, **scales: float) -> Tensor:
        *summand, a, b = given
        plain = all(row.shape == b.shape[1:] and row.is_contiguous() for row in summand) and set(scales.values()) <= {1}
        if plain and a.numel() * b.shape[-1] >= LEAST and a.dtype == torch.float32:
            return by_onednn(a, b, *summand)
        return usual(*given, **scales)

    return multiply
