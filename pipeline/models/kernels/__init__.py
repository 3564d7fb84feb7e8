"""Fast implementations of plain modules: hand-derived backward passes and CPU kernels.

Read the plain module first. It stands in `pipeline/models/layers` or in the folder of its architecture, and calls
the kernel of the same signature when `enabled()` says so:

| plain module | kernel |
|---|---|
| layers/regularisation.py, dropout | dropout.py |
| layers/loss.py | cross_entropy.py |
| layers/positions.py, `gather_positions` | operators.py |
| ctc/model.py, `torch.nn.GRU` in both directions | gru.py |
| recurrent/cells.py, `ConditionalGRU.loop` | conditional_gru.py |
| recurrent/encoder.py, `MemoryGRU.loop` | memory_gru.py |
| speech_attention/model.py, `AttentionRecogniser.loop` | recogniser_loop.py |
| ctc/model.py, `torch.nn.Conv2d` | operators.py |
| transformer/multi_head_attention.py, `attend` | operators.py |
| `torch.softmax` of attention weights | operators.py, `softmax` |
| weighted_transformer/model.py, `weighted_sum` | operators.py |

On a GPU and if REPRISE_GPU_KERNELS=1 (gpu.py), Triton kernels replace torch's:

| plain module | kernel |
|---|---|
| transformer/model.py, `embed` | fused_dropout.py |
| transformer/multi_head_attention.py, `attend` | short_attention.py |
| transformer/layers.py, `ResidualNorm` | fused_dropout.py |
| transformer/layers.py, `FeedForward` | relu_layers.py |
| weighted_transformer/model.py, `sum_branches` and `weighted_sum` | relu_layers.py |
| cross_entropy.py, softmax | cross_entropy.py, `softmax_` |

loops.py holds the steps that several loops share. autocast.py saves casts on a GPU. triton_programs.py and
attention_programs.py have the programs that run on the GPU.
Tests compare values and gradients of both implementations.
"""

import contextlib
import os
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

from pipeline.core.errors import UserError

if TYPE_CHECKING:  # the registry of architectures imports this package without torch
    from torch import Tensor

TRITON_SWITCH = "REPRISE_GPU_KERNELS"
_enabled = True


def enabled() -> bool:
    """Return True unless `disabled` is active."""
    return _enabled


def enabled_on_cpu(x: "Tensor") -> bool:
    """Return True if kernels are enabled and `x`, of any shape, is on a CPU; elsewhere torch's are fast."""
    return _enabled and x.device.type == "cpu"


@contextlib.contextmanager
def disabled() -> Iterator[None]:
    """Run the plain modules inside the block."""
    global _enabled
    previous, _enabled = _enabled, False
    try:
        yield
    finally:
        _enabled = previous


@cache
def triton_asked_for() -> bool:
    """Return whether REPRISE_GPU_KERNELS asks for Triton kernels.

    Raises:
        UserError: It is neither 1 nor 0.
    """
    text = os.environ.get(TRITON_SWITCH, "0")
    if text not in ("0", "1"):
        raise UserError(
            f"{TRITON_SWITCH}={text}: set 1 to compute by Triton kernels on a GPU, or 0 to compute by torch's"
        )
    return text == "1"


def programs() -> ModuleType:
    """Return `triton_programs`, which can be imported only where Triton is installed."""
    from pipeline.models.kernels import triton_programs

    return triton_programs


def programs_of_attention() -> ModuleType:
    """Return `attention_programs`, as `programs`."""
    from pipeline.models.kernels import attention_programs

    return attention_programs
