"""Choice between torch's kernels and this project's Triton kernels on a GPU.

Triton kernels replace torch's where a training step is bound by memory traffic: embeddings, attention over short
sequences, dropout with residual connection and LayerNorm, ReLU layers, and the softmax of the loss. They run in
bfloat16. Their results are a function of inputs and seed, and differ from torch's by rounding.
"""

import logging
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from pipeline.models import kernels

log = logging.getLogger(__name__)
LEVELS = 1 << 16
"""Values of the random numbers that decide whether dropout keeps an element."""


def fused(x: Tensor, dtype: torch.dtype | None = None) -> bool:
    """Return whether a Triton kernel computes with `x` (…): results have a `dtype`, or that of `x`."""
    return (
        x.is_cuda
        and (dtype or x.dtype) == torch.bfloat16
        and kernels.enabled()
        and kernels.triton_asked_for()
        and triton_runs()
    )


@cache
def triton_runs() -> bool:
    """Return whether Triton compiles a kernel for the GPU; if not, log why."""
    missing = "Triton, which is not installed" if torch.version.cuda else "a build of torch for CUDA"
    if not torch.version.cuda or not find_spec("triton"):
        log.warning("%s=1 needs %s: torch's kernels are used", kernels.TRITON_SWITCH, missing)
        return False
    try:
        from pipeline.models.kernels.relu_layers import sum_rows

        sum_rows(torch.ones(1, 16, device="cuda"))
    except Exception as error:  # whatever a compiler's installation can lack
        first, *_ = str(error).splitlines() or [""]
        log.warning("Triton cannot compile kernels, torch's are used: %s: %s", type(error).__name__, first)
        return False
    return True


def draw_seed(like: Tensor) -> Tensor:
    """Draw an int64 seed (1,) on the device of `like`; each replay of a CUDA graph draws another."""
    return torch.randint(1 << 62, (1,), device=like.device)


def dropout_levels(probability: float) -> tuple[int, float]:
    """Return below which of 2^16 levels an element is dropped, and the factor of the others."""
    return round(probability * LEVELS), 1 / (1 - probability)


def power_of_2(size: int) -> int:
    """Return the smallest power of 2 that is at least `size`."""
    return 1 << (size - 1).bit_length()
