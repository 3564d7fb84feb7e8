"""Products of float32 matrices on a CPU by the faster of two libraries inside torch.

torch takes MKL, which on processors of other makers than its own may need twice as long as oneDNN. Which is faster is
measured once for a kind of processor and remembered in the user's cache; `Machine.products` names it.
"""

import logging
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from pipeline.errors import UserError
from pipeline.provenance import processor
from pipeline.records.record import Record, read_note
from pipeline.records.training import Library

log = logging.getLogger(__name__)
WORTH = 1.5
"""Times as fast as MKL that oneDNN has to be: more than a busy machine can feign."""
LEAST = 1 << 20  # multiply-adds: calling oneDNN for fewer takes longer than they do
ROUNDS, ROWS, WIDTH = 5, 512, 256
installed: list[torch.library.Library] = []


class Choice(Record):
    """`products/<torch>/<processor>.json` of the cache."""

    library: Library


def choose(folder: Path) -> Library:
    """What was found on a processor of this kind, or is now; MKL where that can't be remembered."""
    path = remembered(folder)
    if (before := read_note(Choice, path)) is None:
        before = Choice(library="onednn" if lead() >= WORTH else "mkl")
        try:
            before.write(path)
        except UserError as error:
            log.warning("%s: matrices are multiplied by MKL", error)
            return "mkl"
    return before.library


def remembered(folder: Path) -> Path:
    """Where the choice for this kind of processor lies."""
    return folder / "products" / torch.__version__ / f"{processor().replace('/', ' ')}.json"


def in_use() -> Library:
    """The one that multiplies now."""
    return "onednn" if installed else "mkl"


def lead() -> float:
    """Processor time of MKL over that of oneDNN, of the products of a linear layer forward and backward."""
    x, weight, grad = torch.ones(ROWS, WIDTH), torch.ones(WIDTH, WIDTH), torch.ones(ROWS, WIDTH)
    seconds: dict[Callable[..., Tensor], float] = {torch.mm: torch.inf, by_onednn: torch.inf}
    for _ in range(ROUNDS):
        for multiply in seconds:
            began = time.thread_time()
            for pair in ((x, weight.t()), (grad, weight), (grad.t(), x)):
                multiply(*pair)
            seconds[multiply] = min(seconds[multiply], time.thread_time() - began)
    return seconds[torch.mm] / seconds[by_onednn]


def by_onednn(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """a b + bias. A left factor not laid out by rows is copied: of two such, the smaller becomes the left. So is a part
    of a matrix on the right: oneDNN's kernels for one with gaps need a thousand times as long."""
    if a.stride(-1) != 1 and b.stride(0) != 1 and b.numel() < a.numel() and bias is None:
        return by_onednn(b.t(), a.t()).t()
    dense = b if b.is_contiguous() or b.t().is_contiguous() else b.contiguous()
    return torch.ops.mkldnn._linear_pointwise(a, dense.t(), bias, "none", [], "")


def multiply_by(library: Library) -> None:
    """Have `library` do every `mm` and `addmm` of float32 matrices on the CPU, those of backward passes too."""
    while installed:
        installed.pop()._destroy()
    if library == "mkl":
        return
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    mm, addmm = (torch.library.get_kernel(f"aten::{name}", "CPU") for name in ("mm", "addmm"))

    def is_own(a: Tensor, b: Tensor) -> bool:
        return a.dtype == torch.float32 and a.numel() * b.shape[1] >= LEAST

    def own_mm(a: Tensor, b: Tensor) -> Tensor:
        return by_onednn(a, b) if is_own(a, b) else mm.call_boxed(keys, a, b)

    def own_addmm(bias: Tensor, a: Tensor, b: Tensor, **scales: float) -> Tensor:
        if is_own(a, b) and bias.shape == b.shape[1:] and bias.is_contiguous() and set(scales.values()) <= {1}:
            return by_onednn(a, b, bias)
        return addmm.call_boxed(keys, bias, a, b, **scales)

    installed.append(torch.library.Library("aten", "IMPL"))
    with warnings.catch_warnings(action="ignore"):  # that it overrides a kernel is what it is for
        installed[0].impl("mm", own_mm, "CPU")
        installed[0].impl("addmm", own_addmm, "CPU")
