"""The Transformer (Attention Is All You Need, section 3), post-norm, with every variation of its Table 3.

Dimensions: B sentences, K hypotheses, S source and T target positions, D d_model, V target vocabulary.
"""

import math
from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.core.errors import UserError
from pipeline.models.kernels import fused_dropout
from pipeline.models.kernels.autocast import autocast_layers
from pipeline.models.layers.loss import projected_loss
from pipeline.models.layers.positions import LearnedPositions, SinusoidPositions
from pipeline.models.layers.regularisation import dropout
from pipeline.models.seq2seq import LossSums, Modules, TaskModel, Tree
from pipeline.models.transformer import multi_head_attention as attention
from pipeline.models.transformer.layers import DecoderLayer, EncoderLayer, FeedForward
from pipeline.models.transformer.settings import AnyTransformerConfig

LAYERS_PER_CAST = 3
"""Number of neighbouring layers whose weights are cast to the dtype of autocast at once."""
LayerKind = TypeVar("LayerKind", bound=nn.Module)


class Transformer(TaskModel):
    """Encoder and decoder stacks between embeddings and output layer (section 3.1).

    With tied embeddings, one matrix embeds both sides and scores the vocabulary (section 3.4).

    Args:
        config: Settings of the Transformer or of a variant.
        src_vocab: Rows of the source embedding.
        tgt_vocab: V.

    Raises:
        UserError: The embeddings are tied three-way and the two vocabularies differ in size.
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
        """Build an encoder layer; a variant overrides this."""
        config = self.config
        return EncoderLayer(
            config, attention.SelfAttention(config, attention.OutputProjection(config)), FeedForward(config)
        )

    def decoder_layer(self) -> DecoderLayer:
        """Build a decoder layer; a variant overrides this."""
        config = self.config
        self_attention = attention.SelfAttention(config, attention.OutputProjection(config))
        cross_attention = attention.CrossAttention(config, attention.OutputProjection(config))
        return DecoderLayer(config, self_attention, cross_attention, FeedForward(config))

    @property
    def output_weight(self) -> Tensor:
        """The pre-softmax matrix, shape (V, D)."""
        return (self.output or self.tgt_embedding).weight

    def embed(self, table: nn.Embedding, tokens: Tensor, position_vectors: Tensor) -> Tensor:
        """Return Dropout(embedding · sqrt(D) + PE), shape (B, T, D) (sections 3.4 and 5.4).

        Args:
            table: Embedding of one side.
            tokens: Shape (B, T).
            position_vectors: Shape (T, D) or (B, T, D); (1, D) if all tokens are at one position.
        """
        scale, dropout_rate = math.sqrt(self.config.d_model), self.config.dropout if self.training else 0.0
        if fused_dropout.can_embed(table.weight, position_vectors):
            return fused_dropout.embed(table.weight, tokens, position_vectors, scale, dropout_rate)
        return dropout(table(tokens) * scale + position_vectors, dropout_rate)

    def encode(self, src: Tensor, mask: Tensor | None, layers: int | None = None) -> Tensor:
        """Return encoded source symbols, shape (B, S, D).

        Args:
            src: Source symbols, shape (B, S).
            mask: From `attention_mask`, shape (B, 1, 1, S); None if nothing is padded.
            layers: Number of layers to apply; None for all.
        """
        x = self.embed(self.src_embedding, src, self.src_positions(0, src.shape[1]))
        for group in groups(list(self.encoder)[:layers]):
            with autocast_layers(group, x) as x:
                for layer in group:
                    x = layer(x, mask)
        return x

    def decode(self, tgt_in: Tensor, encoded: Tensor, mask: Tensor | None) -> Tensor:
        """Return the features that predict the symbol after each decoder input, shape (B, T, D).

        Args:
            tgt_in: Decoder inputs, BOS first, shape (B, T).
            encoded: Output of the encoder, shape (B, S, D).
            mask: Mask of the source, shape (B, 1, 1, S); None if nothing is padded.
        """
        x = self.embed(self.tgt_embedding, tgt_in, self.tgt_positions(0, tgt_in.shape[1]))
        for group in groups(list(self.decoder)):
            with autocast_layers(group, x) as x:
                for layer in group:
                    x = layer(x, encoded, mask)
        return x

    @property
    def encoder_layers(self) -> int:
        """Number of encoder layers."""
        return len(self.encoder)

    @torch.inference_mode()
    def encoder_attention(self, batch, layer: int) -> Tensor:
        """Return float32 self-attention weights (B, H, S, S) of one encoder layer; H heads, each row sums to 1.

        Args:
            batch: Source of B sentences.
            layer: Index of the layer, counted from 0.
        """
        mask = attention.attention_mask(batch.src_mask, self.output_weight)
        queries, keys, _ = list(self.encoder)[layer].attention.project(self.encode(batch.src, mask, layer))
        # With the identity as values, the output is the weights.
        identity = torch.eye(keys.shape[2], dtype=keys.dtype, device=keys.device).expand(*keys.shape[:2], -1, -1)
        return attention.attend(queries, keys, identity, mask, causal=False, dropout_rate=0.0).float()

    def encode_batch(self, batch) -> tuple[Tensor, Tensor, Tensor | None]:
        """Encode the source of a batch.

        Returns:
            Encoder output (B, S, D); the source mask (B, S), True at source symbols; and the mask for `attend`,
            (B, 1, 1, S) or None.
        """
        src_mask = batch.src_mask
        mask = attention.attention_mask(src_mask, self.output_weight, batch.padded)
        return self.encode(batch.src, mask), src_mask, mask

    def states(self, batch) -> Tensor:
        encoded, _, mask = self.encode_batch(batch)
        return self.decode(batch.tgt_in, encoded, mask)

    def logits(self, states: Tensor) -> Tensor:
        return F.linear(states, self.output_weight).float()

    def loss(self, batch, label_smoothing: float) -> LossSums:
        return projected_loss(self.states(batch), self.output_weight, None, batch, label_smoothing)

    def start(self, batch) -> tuple[Tree, Tree]:
        """Encode a batch, and compute keys and values of the source for every decoder layer.

        Returns:
            The source: its mask (B, S), and per layer keys (B, H, S, d_k) and values (B, H, S, d_v). The cache: per
            layer the keys and values of the target so far, from `SelfAttention.empty_past`.
        """
        encoded, mask, _ = self.encode_batch(batch)
        keys_values = [layer.cross_attention.keys_values(encoded) for layer in self.decoder]
        # Contiguous, because every decoding step reads them.
        layers = [tuple(tensor.contiguous() for tensor in pair) for pair in keys_values]
        return {"mask": mask, "layers": layers}, [layer.self_attention.empty_past(encoded) for layer in self.decoder]

    def advance(self, prev_tokens: Tensor, source: Tree, cache: Tree) -> tuple[Tensor, Tree]:
        """Return task states (B, K, D), and the cache with one more position; see `TaskModel.advance`.

        Args:
            prev_tokens: Newest symbol of each hypothesis, shape (B, K).
            source: First result of `start`.
            cache: Per layer keys (B, K, H, t, d_k) and values (B, K, H, t, d_v) of the t symbols so far; or a
                `fixed_cache`.
        """
        if isinstance(cache, dict):
            return self._advance_fixed(prev_tokens, source, cache)
        position = cache[0][0].shape[3]
        x = self.embed(self.tgt_embedding, prev_tokens, self.tgt_positions(position, position + 1))
        mask = attention.attention_mask(source["mask"], self.output_weight)
        return self._advance_layers(x, source["layers"], mask, cache, None)

    def fixed_cache(self, cache: Tree, places: int) -> Tree:
        """Convert a cache into one of `places` positions; see `Seq2Seq.fixed_cache`.

        Args:
            cache: Second result of `start`, or a fixed cache to which places are added.
            places: T, the total number of positions.

        Returns:
            Number of symbols read (B, K); and per layer keys (B, K, H, T, d_k) and values (B, K, H, T, d_v), of which
            the last places are in use.
        """
        self.tgt_positions.reserve(places)
        if not isinstance(cache, dict):
            keys = cache[0][0]
            cache = {"read": keys.new_full(keys.shape[:2], keys.shape[3], dtype=torch.int64), "layers": cache}
        missing = places - cache["layers"][0][0].shape[3]
        grown = [tuple(F.pad(tensor, (0, 0, missing, 0)) for tensor in past) for past in cache["layers"]]
        return {"read": cache["read"], "layers": grown}

    def _advance_fixed(self, prev_tokens: Tensor, source: Tree, cache: Tree) -> tuple[Tensor, Tree]:
        """Read one symbol per hypothesis into a `fixed_cache`, without synchronising with the device."""
        read, places = cache["read"], cache["layers"][0][0].shape[3]
        x = self.embed(self.tgt_embedding, prev_tokens, self.tgt_positions.at(read))
        used = torch.arange(places, device=read.device) >= places - 1 - read.flatten()[:1]
        visible = attention.attention_mask(used.unsqueeze(0), self.output_weight, padded=True)
        mask = attention.attention_mask(source["mask"], self.output_weight, padded=True)
        x, layers = self._advance_layers(x, source["layers"], mask, cache["layers"], visible)
        return x, {"read": read + 1, "layers": layers}

    def _advance_layers(
        self, x: Tensor, source: Tree, mask: Tensor | None, cache: Tree, visible: Tensor | None
    ) -> tuple[Tensor, Tree]:
        """Return the output (B, K, D) of the decoder layers for one new position, and the cache with it.

        Args:
            x: Embedded symbols, shape (B, K, D).
            source: Keys and values of the source for each layer.
            mask: Mask of the source, shape (B, 1, 1, S); None if nothing is padded.
            cache: Keys and values of the symbols so far for each layer.
            visible: Mask of a fixed cache, shape (1, 1, 1, T); None if the cache grows.
        """
        new_cache = []
        inputs = iter(zip(cache, source, strict=True))
        for group in groups(list(self.decoder)):
            with autocast_layers(group, x) as x:
                # `group` comes first, so that zip leaves the inputs of the next group in the iterator.
                for layer, (past, keys_values) in zip(group, inputs, strict=False):
                    x, past = layer.step(x, past, visible, keys_values, mask)
                    new_cache.append(past)
        return x, new_cache


def groups(layers: Sequence[LayerKind]) -> list[Sequence[LayerKind]]:
    """Split layers into groups of neighbours whose weights are cast together."""
    return [layers[first : first + LAYERS_PER_CAST] for first in range(0, len(layers), LAYERS_PER_CAST)]


def embedding(rows: int, width: int) -> nn.Embedding:
    """Return an embedding with weights from N(0, 1/width), shape (rows, width).

    Multiplied by sqrt(width), as in `Transformer.embed`, vectors have unit variance. The output matrix is used without
    this factor, so that logits have unit variance too.

    Args:
        rows: Size of the vocabulary.
        width: Width of a vector.
    """
    table = nn.Embedding(rows, width)
    nn.init.normal_(table.weight, std=width**-0.5)
    return table


def positions(config: AnyTransformerConfig) -> SinusoidPositions | LearnedPositions:
    """Build the position encodings of the source or the target side."""
    width = config.d_model
    if config.positions == "sinusoid":
        return SinusoidPositions(width)
    return LearnedPositions(config.max_positions, width, std=width**-0.5, scale=width**0.5)


def build(config: AnyTransformerConfig, vocab_sizes: tuple[int, int]) -> Transformer:
    """Return a model with random weights; see `build_model`."""
    return Transformer(config, *vocab_sizes)
