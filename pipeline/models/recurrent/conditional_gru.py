"""The decoder: the conditional GRU of DL4MT (Multi-channel Encoder, section 2, after Bahdanau et al. 2015).

    s'_t = GRU_1(y_{t-1}, s_{t-1})        c_t = sum_j a_tj A_j, a_t = attention of s'_t over the annotations A
    s_t  = GRU_2(c_t, s'_t)

Dimensions: B sentences, K hypotheses, T steps, S source positions, E embedding, H units, D annotation, A hidden units
of attention.
"""

import torch
from torch import Tensor, nn

from pipeline.models import kernels
from pipeline.models.kernels.conditional_gru import conditional_gru
from pipeline.models.recurrent.cells import GRU, AdditiveAttention
from pipeline.models.recurrent.settings import RecurrentConfig


class ConditionalGRU(nn.Module):
    """Two GRUs with additive attention between them."""

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
