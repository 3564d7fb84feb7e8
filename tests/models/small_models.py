"""Settings of small models, and batches for them."""

import torch

from pipeline.data.batches.parallel_batches import TextBatch
from pipeline.models.settings import BOS, EOS, PAD
from pipeline.models.transformer.settings import TransformerConfig
from pipeline.models.weighted_transformer.settings import WeightedTransformerConfig

VOCAB = 40


def transformer_config(**changes) -> TransformerConfig:
    settings = {"num_layers": 2, "d_model": 32, "d_ff": 48, "num_heads": 4, "dropout": 0.0}
    return TransformerConfig(architecture="transformer", **(settings | changes))


LITERAL = {"ffn_mode": "shared", "branched_attention": "self", "residuals": "sub-layers"}
BLOCK = {"ffn_mode": "split", "branched_attention": "cross", "residuals": "block"}


def weighted_config(**changes) -> WeightedTransformerConfig:
    """Compute equation 7 alone by default, without what stands around it in the text."""
    settings = {"num_layers": 2, "d_model": 32, "d_ff": 48, "num_heads": 4, "dropout": 0.0} | BLOCK
    return WeightedTransformerConfig(architecture="weighted_transformer", **(settings | changes))


CONFIGS = {
    "transformer": transformer_config(),
    "narrow keys, wide values": transformer_config(d_k=3, d_v=11),
    "one head": transformer_config(num_heads=1),
    "learned positions": transformer_config(positions="learned", max_positions=20),
    "untied": transformer_config(tie_embeddings="none"),
    "self, network, source": transformer_config(decoder_order="self-ffn-cross"),
    "weighted": weighted_config(),
    "weighted, softmax": weighted_config(normalisation="softmax"),
    "weighted, merged": weighted_config(merged=True),
    "weighted, random": weighted_config(weights="random"),
    "weighted, top 2": weighted_config(top_k=2),
    "weighted, literal": weighted_config(**LITERAL),
    "weighted, literal, merged": weighted_config(**LITERAL, merged=True),
    "weighted, literal, random": weighted_config(**LITERAL, weights="random"),
    "weighted, split, self, sub-layers": weighted_config(branched_attention="self", residuals="sub-layers"),
    "weighted, shared, cross, sub-layers": weighted_config(ffn_mode="shared", residuals="sub-layers"),
    "weighted, shared, self": weighted_config(ffn_mode="shared", branched_attention="self"),
    "weighted, scaled weights": weighted_config(residuals="sub-layers", branch_scale="weights"),
    "weighted, scaled start": weighted_config(residuals="sub-layers", branch_scale="start"),
    "weighted, more branches than heads": weighted_config(num_branches=8),
}
"""Every value of every setting, and every pair of values of ffn_mode, branched_attention and residuals."""
VALUES = ("softmax", "merged", "random", "top 2", "scaled weights", "scaled start")
STRUCTURES = {name: config for name, config in CONFIGS.items() if not name.endswith(VALUES)}
"""Configurations without those in which only the values of branch weights differ."""


def pairs(src_lengths: list[int], tgt_lengths: list[int]) -> TextBatch:
    """Random sentences of these lengths, EOS counted, padded to the longest of a side."""

    def side(lengths: list[int]) -> torch.Tensor:
        tokens = torch.randint(EOS + 1, VOCAB, (len(lengths), max(lengths)))
        for row, length in zip(tokens, lengths, strict=True):
            row[length - 1], row[length:] = EOS, PAD
        return tokens

    src, tgt_out = side(src_lengths), side(tgt_lengths)
    tgt_in = torch.cat((torch.full((len(tgt_out), 1), BOS), tgt_out[:, :-1]), dim=1)
    return TextBatch(src, tgt_in.masked_fill(tgt_in == EOS, PAD), tgt_out)


def rows(batch: TextBatch, row: int, src_length: int, tgt_length: int) -> TextBatch:
    """One sentence of a batch without its padding."""
    return TextBatch(
        batch.src[row : row + 1, :src_length],
        batch.tgt_in[row : row + 1, :tgt_length],
        batch.tgt_out[row : row + 1, :tgt_length],
    )
