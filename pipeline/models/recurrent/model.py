"""Recurrent translation with attention: the seven in-house systems of *Multi-channel Encoder*, and DL4MT.

Dimensions: B sentences, K hypotheses, S source and T target positions, E embedding, H state, D annotation, R readout,
V target vocabulary.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.models.layers.loss import projected_loss
from pipeline.models.layers.regularisation import dropout
from pipeline.models.recurrent.cells import GRU, ConditionalGRU
from pipeline.models.recurrent.encoder import RecurrentEncoder
from pipeline.models.recurrent.settings import RecurrentConfig
from pipeline.models.seq2seq import LossSums, TaskModel, Tree


class Embedding(nn.Module):
    """One vector per symbol, plus one that all symbols share (section 4.4).

    Args:
        symbols: Size of the vocabulary.
        width: E.
        bias: Add the shared vector.
    """

    def __init__(self, symbols: int, width: int, bias: bool):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(symbols, width))
        self.bias = nn.Parameter(torch.empty(width)) if bias else None

    def forward(self, tokens: Tensor) -> Tensor:
        """Embed symbol ids `tokens` (…,), shape (…, E)."""
        vectors = F.embedding(tokens, self.weight)
        return vectors if self.bias is None else vectors + self.bias


class Recurrent(TaskModel):
    """Encoder, conditional GRU and readout.

    Task state o_t = tanh((W_s s_t + b_1) + (W_y y_{t-1} + b_2) + (W_c c_t + b_3)); p(v_t) = softmax(W_o o_t).
    """

    def __init__(self, config: RecurrentConfig, src_vocab: int, tgt_vocab: int):
        super().__init__()
        self.config, self.state_width = config, config.state_width
        self.src_embedding = Embedding(src_vocab, config.d_embedding, config.embedding_bias)
        self.tgt_embedding = Embedding(tgt_vocab, config.d_embedding, config.embedding_bias)
        self.encoder = RecurrentEncoder(config)
        self.start_state = nn.Linear(2 * config.d_state, config.d_state)
        self.decoder = ConditionalGRU(config)
        self.read_state = nn.Linear(config.d_state, config.d_readout)
        self.read_previous = nn.Linear(config.d_embedding, config.d_readout)
        self.read_context = nn.Linear(config.d_annotation, config.d_readout)
        self.output_weight = nn.Parameter(torch.empty(tgt_vocab, config.d_readout))
        self.output_bias = nn.Parameter(torch.empty(tgt_vocab)) if config.output_bias else None
        self.gated_channels = config.channel_names[1:]
        initialise(self, config)

    def encode(self, src: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Encode source symbols.

        Args:
            src: Shape (B, S).
            mask: Shape (B, S), True at source symbols.

        Returns:
            Annotations (B, S, D), and the decoder's initial state s_0 = tanh(W_i mean_j h_j + b_i), shape (B, H).
        """
        annotations, states = self.encoder(self.src_embedding(src), mask)
        share = mask.to(states.dtype) / mask.sum(1, keepdim=True)
        mean = torch.bmm(share.unsqueeze(1), states).squeeze(1)
        return annotations, torch.tanh(self.start_state(mean)).to(states.dtype)

    def readout(self, state: Tensor, previous: Tensor, context: Tensor) -> Tensor:
        """Compute the task state o, with dropout in training.

        Args:
            state: Decoder state s_t, shape (…, H).
            previous: Embedded previous symbol y_{t-1}, shape (…, E).
            context: c_t, shape (…, D).

        Returns:
            Shape (…, R).
        """
        output = torch.tanh(self.read_state(state) + self.read_previous(previous) + self.read_context(context))
        return dropout(output, self.config.output_dropout if self.training else 0.0)

    def states(self, batch) -> Tensor:
        mask = batch.src_mask
        annotations, start = self.encode(batch.src, mask)
        previous = self.tgt_embedding(batch.tgt_in)
        states, contexts = self.decoder(previous, start, annotations, mask)
        return self.readout(states, previous, contexts)

    def logits(self, states: Tensor) -> Tensor:
        return F.linear(states, self.output_weight, self.output_bias).float()

    def channel_gates(self, batch) -> dict[str, Tensor]:
        """Return the gate z (B, S, D) of each blend, by the name in `gated_channels` of the channel that it adds."""
        return self.encoder.blended(self.encoder.channels(self.src_embedding(batch.src), batch.src_mask))[1]

    def loss(self, batch, label_smoothing: float) -> LossSums:
        return projected_loss(self.states(batch), self.output_weight, self.output_bias, batch, label_smoothing)

    def start(self, batch) -> tuple[Tree, Tree]:
        """Encode a batch; see `Seq2Seq.start`.

        The source has mask (B, S), annotations (B, S, D) and keys (B, S, A); the cache is the decoder's state (B, 1,
        H).

        Returns:
            Source and cache.
        """
        mask = batch.src_mask
        annotations, state = self.encode(batch.src, mask)
        keys = self.decoder.attention.keys(annotations)
        return {"mask": mask, "annotations": annotations, "keys": keys}, state.unsqueeze(1)

    def advance(self, prev_tokens: Tensor, source: Tree, cache: Tree) -> tuple[Tensor, Tree]:
        previous = self.tgt_embedding(prev_tokens)
        state, context = self.decoder.step(previous, cache, source["keys"], source["annotations"], source["mask"])
        return self.readout(state, previous, context), state


@torch.no_grad()
def initialise(model: nn.Module, config: RecurrentConfig) -> None:
    """Draw every parameter in place by the distribution that the settings name (section 4.3; DL4MT)."""
    if config.initialisation == "uniform":
        for parameter in model.parameters():
            parameter.uniform_(-config.init_scale, config.init_scale)
    else:
        for module in model.modules():
            initialise_orthogonal(module, config.init_scale)


def initialise_orthogonal(module: nn.Module, scale: float) -> None:
    """Draw the parameters that belong to `module` itself, as session 2 of DL4MT does.

    Square matrices are orthogonal, except those of the readout. Other matrices, and the vector that scores an
    attention, are normal with standard deviation `scale`. Other vectors are zero.

    Args:
        module: Any module of the model; its sub-modules are not changed.
        scale: Standard deviation of the normal weights.
    """
    for name, parameter in module.named_parameters(recurse=False):
        if parameter.dim() == 2:
            for matrix in separate_matrices(module, parameter):
                if matrix.shape[0] == matrix.shape[1] and not isinstance(module, nn.Linear):
                    nn.init.orthogonal_(matrix)
                else:
                    matrix.normal_(std=scale)
        elif name == "score":
            parameter.normal_(std=scale)
        else:
            parameter.zero_()


def separate_matrices(module: nn.Module, parameter: Tensor) -> Sequence[Tensor]:
    """Split a stacked parameter into the matrices that DL4MT draws one by one.

    A GRU has three matrices. If its input has another width than its state, its two gates are one matrix, which is
    square too if the decoder reads an annotation.

    Args:
        module: Owner of the parameter.
        parameter: Shape (rows, columns).

    Returns:
        Views of `parameter`, each of shape (some rows, columns).
    """
    if not isinstance(module, GRU):
        return [parameter]
    between_equals = parameter.shape[1] == module.width
    return parameter.chunk(3) if between_equals else parameter.split([2 * module.width, module.width])


def build(config: RecurrentConfig, vocab_sizes: tuple[int, int]) -> Recurrent:
    """Return a model with random weights; see `build_model`."""
    return Recurrent(config, *vocab_sizes)
