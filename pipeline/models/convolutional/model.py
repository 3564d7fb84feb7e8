"""Convolutional Sequence to Sequence Learning (Gehring et al. 2017, section 3), with the scalings of fairseq-lua.

Dimensions: B sentences, K hypotheses, S source and T target positions, E embedding, C channels, R readout,
V target vocabulary, k kernel width.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.models.convolutional.settings import ConvolutionalConfig
from pipeline.models.layers.loss import projected_loss
from pipeline.models.layers.positions import LearnedPositions
from pipeline.models.layers.regularisation import dropout
from pipeline.models.seq2seq import LossSums, Modules, TaskModel, Tree

HALF = math.sqrt(0.5)
"""Factor of a sum of two terms that keeps their variance (section 3.4)."""
EMBEDDING_STD = 0.1


class NormedLinear(nn.Module):
    """A linear map with weight normalisation (Salimans & Kingma 2016).

    Row i of the weight is g_i v_i / |v_i|. The initial v is drawn from N(0, gain² / width_in). The initial g makes the
    rows equal v, and the bias is zero. `gain` compensates dropout and gating (section 3.5).

    Args:
        width_in: Inputs.
        width_out: Outputs.
        gain: Standard deviation of an output at the start, for inputs of unit variance.
    """

    def __init__(self, width_in: int, width_out: int, gain: float):
        super().__init__()
        self.direction = nn.Parameter(torch.empty(width_out, width_in).normal_(std=gain / math.sqrt(width_in)))
        self.length = nn.Parameter(self.direction.detach().norm(dim=1))
        self.bias = nn.Parameter(torch.zeros(width_out))

    @property
    def weight(self) -> Tensor:
        """The normalised weight, shape (width_out, width_in)."""
        return torch._weight_norm(self.direction, self.length.unsqueeze(1), 0)

    def forward(self, x: Tensor) -> Tensor:
        """Map the last dimension of `x` (…, width_in), shape (…, width_out)."""
        return F.linear(x, self.weight, self.bias)


class Embedding(nn.Module):
    """Sum of a symbol vector and a position vector, with dropout (section 3.1).

    Args:
        symbols: Size of the vocabulary.
        config: Width, dropout and number of positions.
    """

    def __init__(self, symbols: int, config: ConvolutionalConfig):
        super().__init__()
        self.dropout = config.dropout
        self.symbols = nn.Parameter(torch.empty(symbols, config.d_embedding).normal_(std=EMBEDDING_STD))
        self.positions = LearnedPositions(config.max_positions, config.d_embedding, std=EMBEDDING_STD)

    def forward(self, tokens: Tensor, positions: Tensor | None = None) -> Tensor:
        """Return embedded symbols, shape (B, T, E).

        Args:
            tokens: Shape (B, T).
            positions: Position of each symbol, shape (B, T); None for 0 … T - 1.

        Raises:
            UserError: The table has no vector for a position.
        """
        vectors = self.positions(0, tokens.shape[1]) if positions is None else self.positions.at(positions)
        x = F.embedding(tokens, self.symbols) + vectors
        return dropout(x, self.dropout if self.training else 0.0)


class GatedConvolution(nn.Module):
    """Convolution to twice the channels, halved by gated linear units; dropout is applied to the input (section 3.2).

    Args:
        channels: C.
        kernel: k.
        drop: Probability of dropping an input.
    """

    def __init__(self, channels: int, kernel: int, drop: float):
        super().__init__()
        self.kernel, self.dropout = kernel, drop
        self.map = NormedLinear(kernel * channels, 2 * channels, gain=2 * math.sqrt(1 - drop))

    def drop(self, x: Tensor) -> Tensor:
        """Apply dropout to the input `x` of the layer, of any shape, in training."""
        return dropout(x, self.dropout if self.training else 0.0)

    def forward(self, padded: Tensor) -> Tensor:
        """Convolve `padded` (…, T + k - 1, C) to (…, T, C); output t sees inputs t … t + k - 1."""
        length = padded.shape[-2] - self.kernel + 1
        seen = torch.cat([padded[..., shift : shift + length, :] for shift in range(self.kernel)], dim=-1)
        return F.glu(self.map(seen))


class Encoder(nn.Module):
    """Convolutions around each position, with residual connections (sections 3.2 and 3.4)."""

    def __init__(self, config: ConvolutionalConfig):
        super().__init__()
        keep = math.sqrt(1 - config.dropout)
        self.widen = NormedLinear(config.d_embedding, config.d_hidden, gain=keep)
        self.layers = Modules[GatedConvolution](
            GatedConvolution(config.d_hidden, config.encoder_kernel, config.dropout)
            for _ in range(config.encoder_layers)
        )
        self.narrow = NormedLinear(config.d_hidden, config.d_embedding, gain=1.0)
        self.gradient_count = 2 * config.decoder_layers

    def forward(self, embedded: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Encode the embeddings of a batch.

        Args:
            embedded: Embeddings e, shape (B, S, E).
            mask: Shape (B, S), True at source symbols.

        Returns:
            Keys z and values sqrt(0.5) (z + e), both (B, S, E).
        """
        real = mask.unsqueeze(2)
        x = self.widen(embedded)
        for layer in self.layers:
            margin = layer.kernel // 2
            # Padding is zero, as are the margins, so a sentence does not depend on its batch.
            padded = F.pad(layer.drop(x) * real, (0, 0, margin, margin))
            x = (x + layer(padded)) * HALF
        keys = _ScaledGradient.apply(self.narrow(x), 1 / self.gradient_count)
        return keys, (keys + embedded) * HALF


class _ScaledGradient(torch.autograd.Function):
    """Identity whose gradient is scaled: each decoder layer sends two gradients to the encoder (section 3.4)."""

    @staticmethod
    def forward(ctx, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad: Tensor):
        return grad * ctx.factor, None


class DecoderLayer(nn.Module):
    """Convolution over the past, then attention over the source (section 3.3)."""

    def __init__(self, config: ConvolutionalConfig):
        super().__init__()
        self.convolution = GatedConvolution(config.d_hidden, config.decoder_kernel, config.dropout)
        self.query = NormedLinear(config.d_hidden, config.d_embedding, gain=1.0)
        self.mix = NormedLinear(config.d_embedding, config.d_hidden, gain=1.0)

    def forward(self, x: Tensor, convolved: Tensor, embedded: Tensor, source: Tree) -> Tensor:
        """Return attention to the source plus the residual connections, shape (B, T, C).

        Args:
            x: Input of the layer, shape (B, T, C); in decoding T counts hypotheses.
            convolved: Output of `convolution`, shape (B, T, C).
            embedded: Target embeddings, shape (B, T, E).
            source: Keys (B, S, E), values (B, S, E) and mask (B, S) of the source.
        """
        queries = (self.query(convolved) + embedded) * HALF
        scores = torch.bmm(queries, source["keys"].transpose(1, 2).to(queries.dtype))
        weights = scores.float().masked_fill(~source["mask"].unsqueeze(1), -torch.inf).softmax(2)
        context = torch.bmm(weights.to(source["values"].dtype), source["values"])
        # The mean of S vectors has 1 / S of the variance of one, so even weights are compensated by sqrt(S).
        length = source["mask"].sum(1).to(context.dtype)
        context = self.mix(context * length.sqrt()[:, None, None])
        return ((context + convolved) * HALF + x) * HALF


class Convolutional(TaskModel):
    """Convolutional encoder and decoder; the task state is the input of the output layer."""

    def __init__(self, config: ConvolutionalConfig, src_vocab: int, tgt_vocab: int):
        super().__init__()
        self.config, self.state_width, self.max_positions = config, config.state_width, config.max_positions
        keep = math.sqrt(1 - config.dropout)
        self.src_embedding, self.tgt_embedding = Embedding(src_vocab, config), Embedding(tgt_vocab, config)
        self.encoder = Encoder(config)
        self.widen = NormedLinear(config.d_embedding, config.d_hidden, gain=keep)
        self.layers = Modules[DecoderLayer](DecoderLayer(config) for _ in range(config.decoder_layers))
        self.narrow = NormedLinear(config.d_hidden, config.d_readout, gain=1.0)
        self.output = NormedLinear(config.d_readout, tgt_vocab, gain=keep)

    def encode(self, batch) -> Tree:
        """Return keys and values (B, S, E) and mask (B, S) of the source."""
        mask = batch.src_mask
        keys, values = self.encoder(self.src_embedding(batch.src), mask)
        return {"mask": mask, "keys": keys, "values": values}

    def states(self, batch) -> Tensor:
        source = self.encode(batch)
        embedded = self.tgt_embedding(batch.tgt_in)
        x = self.widen(embedded)
        for layer in self.layers:
            convolution = layer.convolution
            padded = F.pad(convolution.drop(x), (0, 0, convolution.kernel - 1, 0))
            x = layer(x, convolution(padded), embedded, source)
        return dropout(self.narrow(x), self.config.dropout if self.training else 0.0)

    def logits(self, states: Tensor) -> Tensor:
        return self.output(states).float()

    def loss(self, batch, label_smoothing: float) -> LossSums:
        return projected_loss(self.states(batch), self.output.weight, self.output.bias, batch, label_smoothing)

    def start(self, batch) -> tuple[Tree, Tree]:
        """Encode a batch; see `Seq2Seq.start`.

        The cache has the position (B, 1) and the last k - 1 inputs of every decoder layer (B, 1, k - 1, C), zero at
        first.

        Returns:
            Source and cache.
        """
        source, width = self.encode(batch), self.config.decoder_kernel - 1
        rows = len(batch.src)
        past = source["keys"].new_zeros(rows, 1, width, self.config.d_hidden)
        position = torch.zeros(rows, 1, dtype=torch.int64, device=past.device)
        return source, {"position": position, "past": [past for _ in self.layers]}

    def advance(self, prev_tokens: Tensor, source: Tree, cache: Tree) -> tuple[Tensor, Tree]:
        embedded = self.tgt_embedding(prev_tokens, cache["position"])
        x, grown = self.widen(embedded), []
        for layer, past in zip(self.layers, cache["past"], strict=True):
            padded = torch.cat((past, x.unsqueeze(2).to(past.dtype)), dim=2)
            grown.append(padded[:, :, 1:])
            x = layer(x, layer.convolution(padded).squeeze(2), embedded, source)
        return self.narrow(x), {"position": cache["position"] + 1, "past": grown}


def build(config: ConvolutionalConfig, vocab_sizes: tuple[int, int]) -> Convolutional:
    """Return a model with random weights; see `build_model`."""
    return Convolutional(config, *vocab_sizes)
