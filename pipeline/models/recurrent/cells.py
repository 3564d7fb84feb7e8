"""The gated recurrent unit and additive attention.

Dimensions: B sentences, K states per sentence, T steps, S positions, I inputs, H units, D annotation, A hidden units of
attention.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.models import kernels


class GRU(nn.Module):
    """Gated recurrent unit (Multi-channel Encoder, eq. 7 and 8; Cho et al. 2014).

        r = sigmoid(W_r x + U_r h + b_r)        z = sigmoid(W_z x + U_z h + b_z)
        h~ = tanh(W x + b + r * (U h))          h' = z * h + (1 - z) * h~

    There is one bias per gate. Gates are stacked in torch's order: r, z, candidate. The unit equals torch's own with
    one of its two biases at zero.

    Args:
        width_in: I.
        width: H.
        reset_bias: Apply the reset gate to the candidate's bias too, as in the second unit of DL4MT's decoder.
    """

    def __init__(self, width_in: int, width: int, reset_bias: bool = False):
        super().__init__()
        self.width, self.reset_bias = width, reset_bias
        self.weight_input = nn.Parameter(torch.empty(3 * width, width_in))
        self.weight_state = nn.Parameter(torch.empty(3 * width, width))
        self.bias = nn.Parameter(torch.empty(3 * width))

    def biases(self) -> tuple[Tensor, Tensor]:
        """Return the biases of W x and of U h, shape (3H,) each."""
        if not self.reset_bias:
            return self.bias, torch.zeros_like(self.bias)
        gates, candidate = self.bias.split([2 * self.width, self.width])
        return F.pad(gates, (0, self.width)), F.pad(candidate, (2 * self.width, 0))

    def forward(self, x: Tensor) -> Tensor:
        """Run the unit over a sequence, by torch's kernel if kernels are enabled.

        Args:
            x: Shape (B, T, I).

        Returns:
            States, shape (B, T, H), from the initial state 0.
        """
        if not kernels.enabled():
            return self.loop(x)
        start = x.new_zeros(1, len(x), self.width)
        weights = [self.weight_input, self.weight_state, *self.biases()]
        return torch.gru(x, start, weights, True, 1, 0.0, self.training, False, True)[0].to(x.dtype)

    def loop(self, x: Tensor) -> Tensor:
        """Run the unit step by step, as `forward`."""
        state, states = x.new_zeros(len(x), self.width), []
        for projected in self.project(x).unbind(1):
            state = self.step(projected, state)
            states.append(state)
        return torch.stack(states, dim=1)

    def project(self, x: Tensor) -> Tensor:
        """Return W x and its biases, shape (…, 3H), of x (…, I)."""
        return F.linear(x, self.weight_input, self.biases()[0])

    def step(self, projected: Tensor, state: Tensor) -> Tensor:
        """Return the state after `state` (…, H), given `projected` (…, 3H)."""
        recurrent = F.linear(state, self.weight_state, self.biases()[1]).to(state.dtype)
        projected = projected.to(state.dtype)
        gates, candidate = projected.split([2 * self.width, self.width], dim=-1)
        r, z = (gates + recurrent[..., : 2 * self.width]).sigmoid().chunk(2, dim=-1)
        return torch.lerp(torch.tanh(candidate + r * recurrent[..., 2 * self.width :]), state, z)


class AdditiveAttention(nn.Module):
    """Additive attention (Multi-channel Encoder, eq. 4 and 5; Bahdanau et al. 2015).

        e_j = v^T tanh(W s + U a_j + b) + c          weights = softmax_j(e_j) over all j that are not padding

    A softmax ignores constants, and tanh(u) = 2 sigmoid(2u) - 1. The scores are therefore computed as
    2 v^T sigmoid(2 (W s + U a_j + b)): on a CPU a sigmoid takes a sixth of the time of a tanh, and there are A of them
    for every pair of positions. `query` is W, `key` U, `score` v and `offset` c, which has no effect.
    """

    def __init__(self, d_state: int, d_annotation: int, d_attention: int):
        super().__init__()
        self.query = nn.Parameter(torch.empty(d_attention, d_state))
        self.key = nn.Parameter(torch.empty(d_attention, d_annotation))
        self.bias = nn.Parameter(torch.empty(d_attention))
        self.score = nn.Parameter(torch.empty(d_attention))
        self.offset = nn.Parameter(torch.empty(1))

    def keys(self, annotations: Tensor) -> Tensor:
        """Return 2 (U a + b), shape (B, S, A), of annotations (B, S, D)."""
        return F.linear(annotations, 2 * self.key, 2 * self.bias)

    def weights(self, state: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        """Compute the attention weights of each state.

        Args:
            state: Shape (B, K, H).
            keys: Shape (B, S, A), see `keys`.
            mask: Shape (B, S), True where a state may attend.

        Returns:
            Shape (B, K, S); each row sums to 1.
        """
        hidden = torch.sigmoid(F.linear(state, 2 * self.query).unsqueeze(2) + keys.unsqueeze(1))
        scores = torch.matmul(hidden, (2 * self.score).to(hidden.dtype)).to(state.dtype)
        return scores.masked_fill(~mask.unsqueeze(1), -torch.inf).softmax(-1)
