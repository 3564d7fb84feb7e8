"""The gated recurrent unit, additive attention, and the conditional GRU that joins them.

Dimensions: B sentences, K hypotheses per sentence, T steps, S source positions, I inputs, E embedding, H units, D
annotation, A hidden units of attention.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.models import kernels
from pipeline.models.kernels.conditional_gru import conditional_gru
from pipeline.models.kernels.loops import run_gru
from pipeline.models.recurrent.settings import RecurrentConfig


class GRU(nn.Module):
    """Gated recurrent unit (Multi-channel Encoder, eq. 7 and 8) in the form of DL4MT and cuDNN.

        r = sigmoid(W_r x + U_r h + b_r)        z = sigmoid(W_z x + U_z h + b_z)
        h~ = tanh(W x + b + r * (U h))          h' = z * h + (1 - z) * h~

    In the original form (Cho et al. 2014), h~ has U (r * h) in place of r * (U h). There is one bias per gate.
    Gates are stacked in torch's order: r, z, candidate. The unit equals torch's own with one of its two biases at
    zero.

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
        """Return the biases (3H,) of W x and of U h."""
        if not self.reset_bias:
            return self.bias, torch.zeros_like(self.bias)
        gates, candidate = self.bias.split([2 * self.width, self.width])
        return F.pad(gates, (0, self.width)), F.pad(candidate, (2 * self.width, 0))

    def forward(self, x: Tensor) -> Tensor:
        """Return the states (B, T, H) of inputs `x` (B, T, I), by torch's kernel if kernels are enabled."""
        if not kernels.enabled():
            return self.loop(x)
        weights = [self.weight_input, self.weight_state, *self.biases()]
        return run_gru(x, weights, self.training).to(x.dtype)

    def loop(self, x: Tensor) -> Tensor:
        """Run the unit step by step, as `forward`."""
        state, states = x.new_zeros(len(x), self.width), []
        for projected in self.project(x).unbind(1):
            state = self.step(projected, state)
            states.append(state)
        return torch.stack(states, dim=1)

    def project(self, x: Tensor) -> Tensor:
        """Compute W x and its biases (…, 3H) of inputs `x` (…, I), which need no state."""
        return F.linear(x, self.weight_input, self.biases()[0])

    def step(self, projected: Tensor, state: Tensor) -> Tensor:
        """Return the next state (…, H), in the dtype of `state` (…, H); `projected` is the result of `project`."""
        recurrent = F.linear(state, self.weight_state, self.biases()[1]).to(state.dtype)
        projected = projected.to(state.dtype)
        gates, candidate = projected.split([2 * self.width, self.width], dim=-1)
        r, z = (gates + recurrent[..., : 2 * self.width]).sigmoid().chunk(2, dim=-1)
        return torch.lerp(torch.tanh(candidate + r * recurrent[..., 2 * self.width :]), state, z)


class AdditiveAttention(nn.Module):
    """Additive attention (Multi-channel Encoder, eq. 4 and 5; Bahdanau et al. 2015).

        e_j = v^T tanh(W s + U a_j + b) + c          weights = softmax_j(e_j) over all j that are not padding

    `query` is W, `key` U, `score` v and `offset` c. A softmax ignores constants, so c has no effect. Since tanh(u) = 2
    sigmoid(2u) - 1, the scores are computed as

        2 v^T sigmoid(2 (W s + U a_j + b))

    On a CPU a sigmoid takes a sixth of the time of a tanh, and there are A of them for every pair of positions.

    Args:
        d_state: Width of the state s.
        d_annotation: Width of an annotation a_j.
        d_attention: A.
    """

    def __init__(self, d_state: int, d_annotation: int, d_attention: int):
        super().__init__()
        self.query = nn.Parameter(torch.empty(d_attention, d_state))
        self.key = nn.Parameter(torch.empty(d_attention, d_annotation))
        self.bias = nn.Parameter(torch.empty(d_attention))
        self.score = nn.Parameter(torch.empty(d_attention))
        self.offset = nn.Parameter(torch.empty(1))

    def keys(self, annotations: Tensor) -> Tensor:
        """Return 2 (U a + b), shape (B, S, A), of `annotations` (B, S, D): the part that no state changes."""
        return F.linear(annotations, 2 * self.key, 2 * self.bias)

    def weights(self, state: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        """Compute the attention weights of each state.

        Args:
            state: Shape (B, K, H).
            keys: Result of `keys`, shape (B, S, A).
            mask: Shape (B, S), True where a state may attend.

        Returns:
            Shape (B, K, S); each row sums to 1.
        """
        hidden = torch.sigmoid(F.linear(state, 2 * self.query).unsqueeze(2) + keys.unsqueeze(1))
        scores = torch.matmul(hidden, (2 * self.score).to(hidden.dtype)).to(state.dtype)
        return scores.masked_fill(~mask.unsqueeze(1), -torch.inf).softmax(-1)


class ConditionalGRU(nn.Module):
    """The decoder of DL4MT: two GRUs with additive attention between them (Multi-channel Encoder, section 2).

    s'_t = GRU_1(y_{t-1}, s_{t-1})
    c_t  = sum_j a_tj A_j, where a_t is the attention of s'_t over the annotations A
    s_t  = GRU_2(c_t, s'_t)
    """

    def __init__(self, config: RecurrentConfig):
        super().__init__()
        self.first = GRU(config.d_embedding, config.d_state)
        self.attention = AdditiveAttention(config.d_state, config.d_annotation, config.d_attention)
        self.second = GRU(config.d_annotation, config.d_state, config.reset_bias)

    def forward(self, y: Tensor, state: Tensor, annotations: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Compute all steps, by the kernel if kernels are enabled.

        Args:
            y: Embedded inputs, shape (B, T, E).
            state: State before the first step, shape (B, H).
            annotations: Shape (B, S, D).
            mask: Shape (B, S), True at source symbols.

        Returns:
            States (B, T, H) and contexts (B, T, D).
        """
        if kernels.enabled():
            return conditional_gru(self, y, state, annotations, mask)
        return self.loop(y, state, annotations, mask)

    def loop(self, y: Tensor, state: Tensor, annotations: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Compute all steps one after the other, as `forward`."""
        keys, state = self.attention.keys(annotations), state.unsqueeze(1)
        states, contexts = [], []
        for t in range(y.shape[1]):
            state, context = self.step(y[:, t : t + 1], state, keys, annotations, mask)
            states.append(state)
            contexts.append(context)
        return torch.cat(states, dim=1), torch.cat(contexts, dim=1)

    def step(self, y: Tensor, state: Tensor, keys: Tensor, annotations: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Advance each hypothesis by one step.

        Args:
            y: Embedded inputs, shape (B, K, E).
            state: Shape (B, K, H).
            keys: `attention.keys(annotations)`, shape (B, S, A).
            annotations: Shape (B, S, D).
            mask: Shape (B, S), True at source symbols.

        Returns:
            The next state (B, K, H) and the context (B, K, D).
        """
        middle = self.first.step(self.first.project(y), state)
        context = self.attention.weights(middle, keys, mask) @ annotations
        return self.second.step(self.second.project(context), middle), context
