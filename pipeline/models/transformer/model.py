"""The Transformer (Attention Is All You Need, section 3), post-norm, with every variation of its Table 3.

Dimensions: B sentences, K hypotheses, S source and T target positions, D d_model, V target vocabulary.
"""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.core.errors import UserError
from pipeline.models.kernels.autocast import Norm, autocast_layers
from pipeline.models.layers.dropout import dropout, dropout_add, relu_dropout
from pipeline.models.layers.loss import projected_loss
from pipeline.models.layers.positions import LearnedPositions, SinusoidPositions
from pipeline.models.seq2seq import LossSums, Modules, TaskModel, Tree
from pipeline.models.transformer.multi_head_attention import (
    CrossAttention,
    OutputProjection,
    SelfAttention,
    attend,
    attention_mask,
    projection,
)
from pipeline.models.transformer.settings import AnyTransformerConfig

LAYER_NORM_EPS = 1e-6
CAST_TOGETHER = 3
"""Layers whose weights are cast together."""
LayerKind = TypeVar("LayerKind", bound=nn.Module)
Network = Callable[[Tensor], tuple[Tensor, Tensor]]
"""A feed-forward network with the signature of `FeedForward`."""


class ResidualNorm(nn.Module):
    """LayerNorm(x + Dropout(sublayer(x))) (section 5.4)."""

    def __init__(self, config: AnyTransformerConfig):
        super().__init__()
        self.dropout = config.dropout
        self.norm = Norm(config.d_model, eps=LAYER_NORM_EPS)

    def forward(self, x: Tensor, output: Tensor) -> Tensor:
        """Add the output of a sub-layer (…, B, T, D) to x (B, T, D) and normalise."""
        return self.norm(dropout_add(x, output, self.dropout if self.training else 0.0))


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2 (eq. 2)."""

    def __init__(self, config: AnyTransformerConfig):
        super().__init__()
        self.dropout = config.relu_dropout
        self.inner = projection(config.d_model, config.d_ff, scale=config.feed_forward_init)
        self.outer = projection(config.d_ff, config.d_model, scale=config.feed_forward_init)
        self.inner.bias = nn.Parameter(torch.zeros(config.d_ff))
        self.outer.bias = nn.Parameter(torch.zeros(config.d_model))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return x (B, T, D), which the output is added to, and the output."""
        return x, self.outer(relu_dropout(self.inner(x), self.dropout if self.training else 0.0))


class Layer(nn.Module):
    """A layer with a feed-forward network, unless its attention contains the network."""

    feed_forward: Network | None
    feed_forward_norm: ResidualNorm | None

    def apply_feed_forward(self, x: Tensor) -> Tensor:
        """Apply the network, if there is one, with residual connection and normalisation."""
        if self.feed_forward is None or self.feed_forward_norm is None:
            return x
        return self.feed_forward_norm(*self.feed_forward(x))


class EncoderLayer(Layer):
    """Self-attention, then the feed-forward network."""

    def __init__(self, config: AnyTransformerConfig, attention: SelfAttention, feed_forward: Network | None):
        super().__init__()
        self.attention, self.attention_norm = attention, ResidualNorm(config)
        self.feed_forward = feed_forward
        self.feed_forward_norm = ResidualNorm(config) if feed_forward else None

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Map x (B, T, D), with a mask (B, 1, 1, T) or None."""
        return self.apply_feed_forward(self.attention_norm(x, self.attention(x, mask, causal=False)))


class DecoderLayer(Layer):
    """Masked self-attention, attention over the source and feed-forward network."""

    def __init__(
        self,
        config: AnyTransformerConfig,
        self_attention: SelfAttention,
        cross_attention: CrossAttention,
        feed_forward: Network | None,
    ):
        super().__init__()
        self.self_attention, self.self_norm = self_attention, ResidualNorm(config)
        self.cross_attention, self.cross_norm = cross_attention, ResidualNorm(config)
        self.feed_forward = feed_forward
        self.feed_forward_norm = ResidualNorm(config) if feed_forward else None
        self.source_last = config.source_last

    def forward(self, x: Tensor, encoded: Tensor, mask: Tensor | None) -> Tensor:
        """Map all target positions x (B, T, D) at once, given encoded (B, S, D) and its mask."""
        keys_values = self.cross_attention.keys_values(encoded)
        return self.attend_source(self.self_norm(x, self.self_attention(x, None, causal=True)), keys_values, mask)

    def step(self, x: Tensor, past: Tree, keys_values: tuple[Tensor, Tensor], mask: Tensor | None):
        """Map one new position per hypothesis x (B, K, D); also returns the grown past."""
        output, past = self.self_attention.step(x, past)
        return self.attend_source(self.self_norm(x, output), keys_values, mask), past

    def attend_source(self, x: Tensor, keys_values: tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        """Apply attention over the source and feed-forward network to x (B, T, D)."""
        if self.source_last:
            x = self.apply_feed_forward(x)
        x = self.cross_norm(x, self.cross_attention(x, keys_values, mask))
        return x if self.source_last else self.apply_feed_forward(x)


class Transformer(TaskModel):
    """Encoder and decoder stacks between embeddings and output layer.

    With tied embeddings, one matrix embeds both sides and scores the vocabulary (section 3.4).

    Raises:
        UserError: Two vocabularies of different size are to share one matrix.
    """

    config: AnyTransformerConfig

    def __init__(self, config: AnyTransformerConfig, src_vocab: int, tgt_vocab: int):
        super().__init__()
        tied = config.tie_embeddings == "three-way"
        if tied and src_vocab != tgt_vocab:
            raise UserError(
                f"model.tie_embeddings: three-way needs one vocabulary for both sides, got {src_vocab} source and "
                f"{tgt_vocab} target subwords; set it to none or use a joint subword model"
            )
        self.config, self.state_width = config, config.state_width
        self.src_embedding = embedding(src_vocab, config.d_model)
        self.tgt_embedding = self.src_embedding if tied else embedding(tgt_vocab, config.d_model)
        self.output = None if tied else embedding(tgt_vocab, config.d_model)
        self.src_positions, self.tgt_positions = positions(config), positions(config)
        self.max_positions = config.max_positions if config.positions == "learned" else None
        self.encoder = Modules[EncoderLayer](self.encoder_layer() for _ in range(config.num_layers))
        self.decoder = Modules[DecoderLayer](self.decoder_layer() for _ in range(config.num_layers))

    def encoder_layer(self) -> EncoderLayer:
        """Build an encoder layer."""
        config = self.config
        return EncoderLayer(config, SelfAttention(config, OutputProjection(config)), FeedForward(config))

    def decoder_layer(self) -> DecoderLayer:
        """Build a decoder layer."""
        config = self.config
        over_target = SelfAttention(config, OutputProjection(config))
        over_source = CrossAttention(config, OutputProjection(config))
        return DecoderLayer(config, over_target, over_source, FeedForward(config))

    @property
    def output_weight(self) -> Tensor:
        """The pre-softmax matrix, shape (V, D)."""
        return (self.output or self.tgt_embedding).weight

    def embed(self, table: nn.Embedding, tokens: Tensor, position_vectors: Tensor) -> Tensor:
        """Compute Dropout(embedding · sqrt(D) + PE).

        Args:
            table: Embedding of one side.
            tokens: Shape (B, T).
            position_vectors: Shape (T, D) or (D,).

        Returns:
            Shape (B, T, D).
        """
        x = table(tokens) * math.sqrt(self.config.d_model) + position_vectors
        return dropout(x, self.config.dropout if self.training else 0.0)

    def encode(self, src: Tensor, mask: Tensor | None, layers: int | None = None) -> Tensor:
        """Encode source symbols.

        Args:
            src: Shape (B, S).
            mask: Shape (B, 1, 1, S), or None.
            layers: Number of layers to apply; None for all.

        Returns:
            Shape (B, S, D).
        """
        x = self.embed(self.src_embedding, src, self.src_positions(0, src.shape[1]))
        for group in groups(list(self.encoder)[:layers]):
            with autocast_layers(group, x) as x:
                for layer in group:
                    x = layer(x, mask)
        return x

    def decode(self, tgt_in: Tensor, encoded: Tensor, mask: Tensor | None) -> Tensor:
        """Return features (B, T, D) that predict the symbol after each of tgt_in (B, T)."""
        x = self.embed(self.tgt_embedding, tgt_in, self.tgt_positions(0, tgt_in.shape[1]))
        for group in groups(list(self.decoder)):
            with autocast_layers(group, x) as x:
                for layer in group:
                    x = layer(x, encoded, mask)
        return x

    @torch.inference_mode()
    def encoder_attention(self, batch, layer: int) -> Tensor:
        """Return the self-attention weights (B, H, S, S) of one encoder layer, counted from 0."""
        mask = attention_mask(batch.src_mask, self.output_weight)
        queries, keys, _ = list(self.encoder)[layer].attention.project(self.encode(batch.src, mask, layer))
        # With the identity as values, the output is the weights.
        identity = torch.eye(keys.shape[2], dtype=keys.dtype, device=keys.device).expand(*keys.shape[:2], -1, -1)
        return attend(queries, keys, identity, mask, causal=False, dropout_rate=0.0).float()

    def encode_batch(self, batch) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return the encoder output (B, S, D), its mask (B, S), and the mask of `attend`."""
        real = batch.src_mask
        mask = attention_mask(real, self.output_weight, batch.padded)
        return self.encode(batch.src, mask), real, mask

    def states(self, batch) -> Tensor:
        """Return teacher-forced task states (B, T, D)."""
        encoded, _, mask = self.encode_batch(batch)
        return self.decode(batch.tgt_in, encoded, mask)

    def logits(self, states: Tensor) -> Tensor:
        """Return float32 logits (…, V) of task states (…, D)."""
        return F.linear(states, self.output_weight).float()

    def loss(self, batch, label_smoothing: float) -> LossSums:
        """Compute the summed loss of a batch, teacher-forced."""
        return projected_loss(self.states(batch), self.output_weight, None, batch, label_smoothing)

    def start(self, batch) -> tuple[Tree, Tree]:
        """Encode a batch; see `Seq2Seq.start`."""
        encoded, mask, _ = self.encode_batch(batch)
        keys_values = [layer.cross_attention.keys_values(encoded) for layer in self.decoder]
        # Made contiguous once, because every step reads them.
        layers = [tuple(tensor.contiguous() for tensor in pair) for pair in keys_values]
        return {"mask": mask, "layers": layers}, [layer.self_attention.empty_past(encoded) for layer in self.decoder]

    def advance(self, prev_tokens: Tensor, source: Tree, cache: Tree) -> tuple[Tensor, Tree]:
        """Read one symbol per hypothesis; see `TaskModel.advance`."""
        position = cache[0][0].shape[3]
        x = self.embed(self.tgt_embedding, prev_tokens, self.tgt_positions(position, position + 1))
        mask, grown = attention_mask(source["mask"], self.output_weight), []
        rest = iter(zip(cache, source["layers"], strict=True))
        for group in groups(list(self.decoder)):
            with autocast_layers(group, x) as x:
                for layer, (past, keys_values) in zip(group, rest, strict=False):
                    x, past = layer.step(x, past, keys_values, mask)
                    grown.append(past)
        return x, grown


def groups(layers: Sequence[LayerKind]) -> list[Sequence[LayerKind]]:
    """Split layers into groups of neighbours whose weights are cast together."""
    return [layers[first : first + CAST_TOGETHER] for first in range(0, len(layers), CAST_TOGETHER)]


def embedding(rows: int, width: int) -> nn.Embedding:
    """Build an embedding from N(0, 1/width).

    Vectors have unit variance after multiplication by sqrt(width), logits without it.
    """
    table = nn.Embedding(rows, width)
    nn.init.normal_(table.weight, std=width**-0.5)
    return table


def positions(config: AnyTransformerConfig) -> nn.Module:
    """Build the position encodings of one side."""
    width = config.d_model
    if config.positions == "sinusoid":
        return SinusoidPositions(width)
    return LearnedPositions(config.max_positions, width, std=width**-0.5, scale=width**0.5)


def build(config: AnyTransformerConfig, vocab_sizes: tuple[int, int]) -> Transformer:
    """Build an initialised model for source and target vocabulary."""
    return Transformer(config, *vocab_sizes)
