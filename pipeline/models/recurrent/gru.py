"""The gated recurrent unit (Cho et al. 2014; Multi-channel Encoder, eq. 7 and 8) as DL4MT has it, a bias a gate.

    r = sigmoid(W_r x + U_r h + b_r)        z = sigmoid(W_z x + U_z h + b_z)
    h~ = tanh(W x + b + r * (U h))          h' = z * h + (1 - z) * h~

It is torch's own with one of its two biases at zero, so that a sequence goes through the library's kernel.

Dimensions: B sentences, T steps, D inputs, H units.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class GRU(nn.Module):
    """weight_input (3H, D), weight_state (3H, H) and bias (3H,), the gates in torch's order r, z, candidate.

    reset_bias: the reset gate acts on the candidate's bias too, as in the second unit of DL4MT's decoder.
    """

    def __init__(self, width_in: int, width: int, reset_bias: bool = False):
        super().__init__()
        self.width, self.reset_bias = width, reset_bias
        self.weight_input = nn.Parameter(torch.empty(3 * width, width_in))
        self.weight_state = nn.Parameter(torch.empty(3 * width, width))
        self.bias = nn.Parameter(torch.empty(3 * width))

    def biases(self) -> tuple[Tensor, Tensor]:
        """What is added to W x and to U h, (3H,) each."""
        if not self.reset_bias:
            return self.bias, torch.zeros_like(self.bias)
        gates, candidate = self.bias.split([2 * self.width, self.width])
        return F.pad(gates, (0, self.width)), F.pad(candidate, (2 * self.width, 0))

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, D) -> states (B, T, H) of a sequence that begins in the state 0."""
        start = x.new_zeros(1, len(x), self.width)
        weights = [self.weight_input, self.weight_state, *self.biases()]
        return torch.gru(x, start, weights, True, 1, 0.0, self.training, False, True)[0].to(x.dtype)

    def project(self, x: Tensor) -> Tensor:
        """W x and its biases, (…, D) -> (…, 3H)"""
        return F.linear(x, self.weight_input, self.biases()[0])

    def step(self, projected: Tensor, state: Tensor) -> Tensor:
        """The state after `state` (…, H), given `projected` (…, 3H)."""
        recurrent = F.linear(state, self.weight_state, self.biases()[1]).to(state.dtype)
        projected = projected.to(state.dtype)
        gates, candidate = projected.split([2 * self.width, self.width], dim=-1)
        r, z = (gates + recurrent[..., : 2 * self.width]).sigmoid().chunk(2, dim=-1)
        return torch.lerp(torch.tanh(candidate + r * recurrent[..., 2 * self.width :]), state, z)
