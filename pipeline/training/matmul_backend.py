"""Choice of the faster matrix multiplication library inside torch on a CPU.

In float32 torch uses MKL, which can take twice as long as oneDNN on processors that Intel did not make. In bfloat16 a
matmul takes 45 times as long as in float32 if the processor lacks instructions for it, and sometimes 1.7 times if it
has them. Runs that ask for bfloat16 compute in float32 there. The faster way is measured once per kind of processor and
stored in the user's cache. `Machine` records it.
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
from pipeline.core.records.record import Record
from pipeline.core.records.training import MatmulSettings

log = logging.getLogger(__name__)
Matmul = Callable[..., Tensor]
ONEDNN_SPEEDUP, FLOAT32_SPEEDUP = 1.5, 1.3
"""Smallest speed-ups that count; load on the machine can cause smaller ones."""
LEAST = 1 << 20
"""Multiply-adds below which calling oneDNN takes longer than the matmul."""
ROUNDS, ROWS, WIDTH = 5, 512, 256


class MatmulBackend(MatmulSettings, Record):
    """`products/<torch>/<processor>.json` in the cache."""


TORCH_DEFAULT = MatmulBackend()
installed: list[tuple[MatmulBackend, torch.library.Library]] = []


def choose_backend(folder: Path) -> MatmulBackend:
    """Return the cached backend for this kind of processor, or measure and cache it in `folder`.

    If it cannot be cached, use torch's default, so that all runs compute alike.
    """
    path = cache_path(folder)
    if (backend := MatmulBackend.read_if_valid(path)) is None:
        mkl, onednn, bfloat16 = benchmark(
            (torch.mm, torch.float32), (onednn_matmul, torch.float32), (torch.mm, torch.bfloat16)
        )
        leads = mkl >= ONEDNN_SPEEDUP * onednn
        widened = bfloat16 >= FLOAT32_SPEEDUP * (onednn if leads else mkl)
        backend = MatmulBackend(products="onednn" if leads else "mkl", widened=widened)
        try:
            backend.write(path)
        except UserError as error:
            log.warning("%s: torch's default matrix multiplication is used", error)
            return TORCH_DEFAULT
    return backend


def cache_path(folder: Path) -> Path:
    """Return the path of the cached choice; it names bfloat16 instructions, as the processor's name may not."""
    own = sorted(name for name, has in torch.cpu.get_capabilities().items() if has and "bf16" in name)
    return folder / "products" / torch.__version__ / f"{' '.join([processor().replace('/', ' '), *own])}.json"


def current_backend() -> MatmulBackend:
    """Return the backend in use."""
    return installed[0][0] if installed else TORCH_DEFAULT


def benchmark(*ways: tuple[Matmul, torch.dtype]) -> list[float]:
    """Return the least CPU seconds that each way takes for a linear layer, forward and backward."""
    least = [math.inf] * len(ways)
    for _ in range(ROUNDS):
        for i, (matmul, dtype) in enumerate(ways):
            x, weight, grad = (torch.ones(rows, WIDTH, dtype=dtype) for rows in (ROWS, WIDTH, ROWS))
            began = time.thread_time()
            for pair in ((x, weight.t()), (grad, weight), (grad.t(), x)):
                matmul(*pair)
            least[i] = min(least[i], time.thread_time() - began)
    return least


def onednn_matmul(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return `a` (rows, inner) @ `b` (inner, columns) + `bias`, None, (columns,) or (rows, columns), by oneDNN.

    oneDNN copies a left factor that is not row-major. If both would be copied, the smaller one becomes the left one. A
    right factor with gaps is made contiguous: oneDNN's kernels for one with gaps take a thousand times as long.
    """
    if a.stride(-1) != 1 and b.stride(0) != 1 and b.numel() < a.numel() and bias is None:
        return onednn_matmul(b.t(), a.t()).t()
    dense = b if b.is_contiguous() or b.t().is_contiguous() else b.contiguous()
    return torch.ops.mkldnn._linear_pointwise(a, dense.t(), bias, "none", [], "")


def use_backend(backend: MatmulBackend) -> None:
    """Make torch's float32 matmuls on the CPU use `backend`, those of backward passes too."""
    while installed:
        installed.pop()[1]._destroy()
    if backend == TORCH_DEFAULT:
        return
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    installed.append((backend, torch.library.Library("aten", "IMPL")))
    for name in ("mm", "addmm") if backend.products == "onednn" else ():
        kernel = torch.library.get_kernel(f"aten::{name}", "CPU")
        with warnings.catch_warnings(action="ignore"):  # torch warns that a kernel is overridden
            installed[0][1].impl(name, onednn_or(partial(kernel.call_boxed, keys)), "CPU")


def onednn_or(default: Matmul) -> Matmul:
    """Return an operator that uses oneDNN for large float32 matmuls and `default` for all others."""

    def matmul(*tensors: Tensor, **scales: float) -> Tensor:
        *summand, a, b = tensors
        plain = all(row.shape == b.shape[1:] and row.is_contiguous() for row in summand) and set(scales.values()) <= {1}
        if plain and a.numel() * b.shape[-1] >= LEAST and a.dtype == torch.float32:
            return onednn_matmul(a, b, *summand)
        return default(*tensors, **scales)

    return matmul
