"""The fused kernels that torch chooses on a GPU, and which a torch without CUDA would do in many operators."""

import torch
from torch.autograd import Function

aten = torch.ops.aten
MISSING = torch.library.Library("aten", "IMPL", "Meta")


def attention(queries, keys, values, mask=None, dropout_p=0.0, is_causal=False):
    """Flash attention without a mask, the memory-efficient one with a mask or in single precision."""
    narrow = queries.dtype in (torch.bfloat16, torch.float16)
    if mask is None and narrow:
        return aten._scaled_dot_product_flash_attention(queries, keys, values, dropout_p, is_causal)[0]
    if mask is not None and mask.dtype == torch.bool:  # what ATen does first
        mask = torch.zeros(mask.shape, dtype=queries.dtype, device=mask.device).masked_fill_(~mask, -torch.inf)
    if mask is not None and any(stride % 8 for stride in mask.stride()[:-1]):  # and then copies what is not aligned
        width = mask.shape[-1]
        mask = torch.nn.functional.pad(mask, (0, 8 - width % 8))[..., :width]
    bias = None if mask is None else mask.expand(*queries.shape[:-1], keys.shape[-2])
    attend = aten._scaled_dot_product_efficient_attention
    return attend(queries, keys, values, bias, torch.is_grad_enabled(), dropout_p, is_causal)[0]


class Recurrence(Function):
    """cuDNN's: a kernel a step and layer there, two on the way back."""

    @staticmethod
    def forward(ctx, x, width, *weights):
        ctx.save_for_backward(x, *weights)
        ctx.kernels = 2 * x.shape[1] * (len(weights) // 4)
        out = x.new_empty(*x.shape[:2], width)
        for _ in range(ctx.kernels // 2 - 1):
            torch.ops.aten.zero_(out[:, 0])
        return aten.zero_(out)

    @staticmethod
    def backward(ctx, by_out):
        x, *weights = ctx.saved_tensors
        for _ in range(ctx.kernels):
            aten.zero_(by_out[:, 0])
        return torch.empty_like(x), None, *(torch.empty_like(weight) for weight in weights)


def gru(x, start, weights, *_):
    assert not torch.is_autocast_enabled("cuda"), "autocast runs cuDNN's recurrent layers in float16"
    assert {tensor.dtype for tensor in (x, start, *weights)} == {torch.float32}
    width = start.shape[-1]
    out = Recurrence.apply(x, width, *weights)
    return out, out[:, -1].unsqueeze(0).expand(start.shape[0], -1, -1)


def lstm(x, start, weights, *_):
    out, last = gru(x, start[0], weights)
    return out, last, last


def fused_cell(by_input, by_state, state, *_):
    return torch.empty_like(state), state.new_empty(len(state), 5 * state.shape[1])


def fused_cell_backward(by_state, workspace, has_bias):
    gates = workspace.new_empty(len(by_state), 3 * by_state.shape[1])
    bias = workspace.new_empty(3 * by_state.shape[1]) if has_bias else None
    return gates, torch.empty_like(gates), torch.empty_like(by_state), bias, bias


def ctc_loss(log_probs, targets, *_, **__):
    steps, rows, _ = log_probs.shape
    return log_probs.new_empty(rows), log_probs.new_empty(rows, steps, 2 * targets.shape[1] + 1)


MADE_UP = {
    "_use_cudnn_ctc_loss": lambda *_, **__: False,  # cuDNN's is for targets on the host
    "_use_miopen_ctc_loss": lambda *_, **__: False,
    "_ctc_loss": ctc_loss,
    "_ctc_loss_backward": lambda grad, log_probs, *_, **__: torch.empty_like(log_probs),
}
"""Results that fake tensors cannot compute, by operator."""


def install() -> None:
    torch.nn.functional.scaled_dot_product_attention = attention
    torch.gru = torch._VF.gru = gru
    torch.lstm = torch._VF.lstm = lstm
    MISSING.impl("_thnn_fused_gru_cell", fused_cell)
    MISSING.impl("_thnn_fused_gru_cell_backward", fused_cell_backward)
    for optimiser in ("_fused_sgd_", "_fused_sgd_.tensor_lr", "_fused_adam_.tensor_lr"):
        MISSING.impl(optimiser, lambda *_, **__: None)
    torch.nn.utils.clip_grad._has_foreach_support = lambda *_: True  # it asks for plain tensors
