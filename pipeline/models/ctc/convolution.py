"""Convolution over frames and features, of an odd kernel padded by half of it, on a CPU as one over frames alone.

Deep Speech 2's kernels are as high as there are features, so that the other one has hardly more products; and torch
takes the gradient of so large a kernel three to ten times as slowly as the rest.

Dimensions: B utterances, C channels read, O channels written, S frames, F features; primed, after the strides.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Convolution(nn.Conv2d):
    def forward(self, x: Tensor) -> Tensor:
        """x (B, C, S, F) -> (B, O, S', F')"""
        if x.device.type != "cpu":
            return super().forward(x)
        bands, (width, height), (hop, jump) = x.shape[3], self.kernel_size, self.stride
        # The rows of the kernel that each place after the strides multiplies the features by, (O, C, W, F', F)
        first = bands + height // 2 - torch.arange(0, bands, jump)
        rows = F.pad(self.weight, (bands, bands)).unfold(3, bands, 1)[:, :, :, first]
        weight = rows.permute(0, 3, 1, 4, 2).flatten(2, 3).flatten(0, 1)
        bias = None if self.bias is None else self.bias.repeat_interleave(len(first))
        out = F.conv1d(x.transpose(2, 3).flatten(1, 2), weight, bias, hop, width // 2)
        return out.unflatten(1, (-1, len(first))).transpose(2, 3)
