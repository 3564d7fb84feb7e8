"""Two-dimensional convolution on a CPU, computed as a one-dimensional convolution over frames.

The kernels of Deep Speech 2 are as high as there are features, so the one-dimensional form has hardly more
multiplications. torch computes the gradient of so large a kernel three to ten times as slowly as the rest.

Dimensions: B utterances, C input channels, O output channels, S frames, F features; S', F' after the strides.
W and Z: width and height of the kernel.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def conv2d_over_frames(convolution: nn.Conv2d, x: Tensor) -> Tensor:
    """Apply a convolution with an odd kernel and half of it as padding.

    Args:
        convolution: Gives weight (O, C, W, Z), bias and stride.
        x: Shape (B, C, S, F).

    Returns:
        Shape (B, O, S', F').
    """
    bands, (width, height), (hop, jump) = x.shape[3], convolution.kernel_size, convolution.stride
    # Kernel rows that each output feature multiplies the input features by, shape (O, C, W, F', F).
    first = bands + height // 2 - torch.arange(0, bands, jump)
    rows = F.pad(convolution.weight, (bands, bands)).unfold(3, bands, 1)[:, :, :, first]
    weight = rows.permute(0, 3, 1, 4, 2).flatten(2, 3).flatten(0, 1)
    bias = None if convolution.bias is None else convolution.bias.repeat_interleave(len(first))
    out = F.conv1d(x.transpose(2, 3).flatten(1, 2), weight, bias, hop, width // 2)
    return out.unflatten(1, (-1, len(first))).transpose(2, 3)
