"""Export of plain Transformers to the format of CTranslate2."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from pipeline.core.errors import UserError
from pipeline.core.symbols import BOS, EOS, UNK
from pipeline.data.text.vocabulary import MODEL, TGT_MODEL, Subwords
from pipeline.models.transformer.model import LAYER_NORM_EPS, Transformer
from reprise.model import Model
from reprise.user_files import whole_folder

POSITIONS = 2048
"""Positions that are exported for a model with sinusoids, which have no last position."""


def export(model: Model, folder: Path, quantization: str | None = None) -> None:
    """Write the folder that `ctranslate2.Translator` opens, with the subword models beside it.

    Raises:
        UserError: CTranslate2 isn't installed, can't express the model, or the folder is there already.
    """
    network, (src, tgt) = plain_transformer(model), model.symbols
    if folder.exists():
        raise UserError(f"{folder}: is there already; name a new folder")
    assert src is not None and isinstance(tgt, Subwords), "a Transformer reads and writes subwords"
    with whole_folder(folder) as new:
        write(network, pieces(src), pieces(tgt), new, quantization)
        for name, subwords in {MODEL: src, **({} if tgt is src else {TGT_MODEL: tgt})}.items():
            (new / name).write_bytes(subwords.model.serialized_model_proto())


def write(
    network: Transformer, src_pieces: list[str], tgt_pieces: list[str], folder: Path, quantization: str | None
) -> None:
    """Write the model into `folder`, without subword models. Raises UserError without CTranslate2."""
    try:
        from ctranslate2.specs import TransformerSpec
    except ImportError as error:
        raise UserError("CTranslate2 is not installed; run `pip install '.[ct2]'`") from error
    spec: Any = TransformerSpec.from_config(network.config.num_layers, network.config.num_heads, pre_norm=False)
    fill(spec, network)
    spec.config.layer_norm_epsilon = LAYER_NORM_EPS
    spec.config.add_source_eos = True
    spec.config.bos_token = spec.config.decoder_start_token = tgt_pieces[BOS]
    spec.config.eos_token, spec.config.unk_token = tgt_pieces[EOS], tgt_pieces[UNK]
    spec.register_source_vocabulary(src_pieces)
    spec.register_target_vocabulary(tgt_pieces)
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))


def plain_transformer(model: Model) -> Transformer:
    """Return the network. Raises UserError with the reason if CTranslate2 cannot express it."""
    spec, network = model.trained.spec, model.trained.model
    if spec.model.architecture != "transformer" or not isinstance(network, Transformer):
        what = spec.model.architecture + (" fused with a language model" if spec.fusion else "")
        raise UserError(f"{model.name}: is a {what}; CTranslate2 has plain Transformers alone")
    config = network.config
    if {config.key_width, config.value_width} != {config.d_model / config.num_heads}:
        raise UserError(f"{model.name}: its heads are not d_model / num_heads wide, as they are in CTranslate2")
    if config.source_last:
        raise UserError(
            f"{model.name}: its decoder reads the source last; CTranslate2 has decoder_order self-cross-ffn"
        )
    return network


def positions(network: Transformer) -> int:
    """Return the number of positions that are exported on each side."""
    return network.max_positions or POSITIONS


def fill(spec: Any, network: Transformer) -> None:
    """Copy every weight of `network` into a TransformerSpec."""
    encoder, decoder = spec.encoder, spec.decoder
    encoder.embeddings[0].weight = numbers(network.src_embedding.weight)
    decoder.embeddings.weight = numbers(network.tgt_embedding.weight)
    decoder.projection.weight = numbers(network.output_weight)
    last = positions(network)
    encoder.position_encodings.encodings = numbers(network.src_positions(0, last))
    decoder.position_encodings.encodings = numbers(network.tgt_positions(0, last))
    for place, lower in zip(encoder.layer, network.encoder, strict=True):
        fill_attention(place.self_attention, lower.attention, lower.attention_norm)
        fill_feed_forward(place.ffn, lower)
    for place, upper in zip(decoder.layer, network.decoder, strict=True):
        fill_attention(place.self_attention, upper.self_attention, upper.self_norm)
        fill_attention(place.attention, upper.cross_attention, upper.cross_norm)
        fill_feed_forward(place.ffn, upper)


def fill_attention(place: Any, attention: Any, norm: Any) -> None:
    """Copy an attention layer; self-attention has one matrix for queries, keys and values."""
    layers = [attention.qkv] if len(place.linear) == 2 else [attention.query, attention.kv]
    for linear, module in zip(place.linear, [*layers, attention.mix.output], strict=True):
        linear.weight = numbers(module.weight)
    place.layer_norm.gamma, place.layer_norm.beta = numbers(norm.norm.weight), numbers(norm.norm.bias)


def fill_feed_forward(place: Any, layer: Any) -> None:
    """Copy a feed-forward layer with its norm."""
    norm, feed_forward = layer.feed_forward_norm.norm, layer.feed_forward
    for linear, module in ((place.linear_0, feed_forward.inner), (place.linear_1, feed_forward.outer)):
        linear.weight, linear.bias = numbers(module.weight), numbers(module.bias)
    place.layer_norm.gamma, place.layer_norm.beta = numbers(norm.weight), numbers(norm.bias)


def numbers(tensor: torch.Tensor) -> np.ndarray:
    """Return a tensor as float32 on the CPU."""
    return tensor.detach().float().cpu().numpy()


def pieces(subwords: Subwords) -> list[str]:
    """Return the subword pieces in the order of their ids."""
    return [subwords.model.id_to_piece(number) for number in range(len(subwords))]
