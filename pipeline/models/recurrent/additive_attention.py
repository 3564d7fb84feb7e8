"""Additive attention (Bahdanau et al. 2015; Multi-channel Encoder, eq. 4 and 5), also the memory's way of addressing.

    e_j = v^T tanh(W s + U a_j + b) + c          weights = softmax_j(e_j) over what is not padding

A softmax feels no constant, and tanh(u) = 2 sigmoid(2u) - 1: the scores are 2v^T sigmoid(2 (W s + U a_j + b)), because
on a processor a sigmoid takes a sixth of the time of a tanh, and there are A of them for every pair of positions.

Dimensions: B sentences, K states per sentence, S positions, H state, D annotation, A hidden units.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class AdditiveAttention(nn.Module):
    """query (A, H) = W, key (A, D) = U, bias (A,), score (A,) = v; offset = c, which no softmax feels."""

    def __init__(self, d_state: int, d_annotation: int, d_attention: int):
        super().__init__()
        self.query = nn.Parameter(torch.empty(d_attention, d_state))
        self.key = nn.Parameter(torch.empty(d_attention, d_annotation))
        self.bias = nn.Parameter(torch.empty(d_attention))
        self.score = nn.Parameter(torch.empty(d_attention))
        self.offset = nn.Parameter(torch.empty(1))

    def keys(self, annotations: Tensor) -> Tensor:
        """(B, S, D) -> 2 (U a + b), (B, S, A)"""
        return F.linear(annotations, 2 * self.key, 2 * self.bias)

    def weights(self, state: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        """state (B, K, H), keys (B, S, A), mask (B, S), True where there is a symbol -> (B, K, S), each row of sum 1"""
        hidden = torch.sigmoid(F.linear(state, 2 * self.query).unsqueeze(2) + keys.unsqueeze(1))
        scores = torch.matmul(hidden, (2 * self.score).to(hidden.dtype)).to(state.dtype)
        return scores.masked_fill(~mask.unsqueeze(1), -torch.inf).softmax(-1)
