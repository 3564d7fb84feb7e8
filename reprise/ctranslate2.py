"""Plain Transformers in CTranslate2: export to its format, and beam search by it, also with 8-bit weights on a CPU."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pipeline.config import DecodingConfig
from pipeline.core.errors import UserError
from pipeline.data.text.vocabulary import MODEL, TGT_MODEL, Subwords
from pipeline.decoding.trained_model import Decoder
from pipeline.models.settings import BOS, EOS, UNK
from pipeline.models.transformer.layers import LAYER_NORM_EPS
from pipeline.models.transformer.model import Transformer
from pipeline.search.beam_search import Hypothesis
from pipeline.search.interface import output_limits
from reprise.model import LONGEST_SOURCE, Model
from reprise.user_files import whole_folder

POSITIONS = LONGEST_SOURCE + 1
"""Exported positions of a model with sinusoids, which have no last position."""


def export(model: Model, folder: Path, quantization: str | None = None) -> None:
    """Write the folder that `ctranslate2.Translator` opens, with the subword models beside it.

    Args:
        model: A plain Transformer.
        folder: Folder to create.
        quantization: Type of the exported weights, e.g. int8; None means float32.

    Raises:
        UserError: CTranslate2 isn't installed or can't express the model or its decoding, or the folder exists.
    """
    network, (src, tgt) = plain_transformer(model), model.symbols
    refuse_language_model(model.name, model.config)
    if folder.exists():
        raise UserError(f"{folder}: already exists; name a new folder")
    assert src is not None and isinstance(tgt, Subwords), "a Transformer reads and writes subwords"
    with whole_folder(folder) as new:
        write(network, pieces(src), pieces(tgt), new, quantization)
        for name, subwords in {MODEL: src, **({} if tgt is src else {TGT_MODEL: tgt})}.items():
            (new / name).write_bytes(subwords.model.serialized_model_proto())


def write(
    network: Transformer, src_pieces: list[str], tgt_pieces: list[str], folder: Path, quantization: str | None
) -> None:
    """Write a network into a folder, without subword models.

    Args:
        network: A Transformer that CTranslate2 can express (see `plain_transformer`).
        src_pieces: Source subwords in the order of their ids.
        tgt_pieces: Target subwords in the order of their ids.
        folder: Existing folder.
        quantization: Type of the exported weights; None means float32.

    Raises:
        UserError: CTranslate2 isn't installed.
    """
    try:
        from ctranslate2.specs import TransformerSpec
    except ImportError as error:
        raise UserError("CTranslate2 is not installed; run `pip install -e '.[ct2]'`") from error
    spec: Any = TransformerSpec.from_config(network.config.num_layers, network.config.num_heads, pre_norm=False)
    copy_weights(network, spec)
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
    """Return the network of a model that CTranslate2 can express.

    Raises:
        UserError: CTranslate2 can't express it; the message says why.
    """
    spec, network = model.trained.spec, model.trained.model
    if spec.model.architecture != "transformer" or not isinstance(network, Transformer):
        what = spec.model.architecture + (" fused with a language model" if spec.fusion else "")
        raise UserError(f"{model.name}: is a {what}; CTranslate2 supports plain Transformers only")
    config = network.config
    if {config.key_width, config.value_width} != {config.d_model / config.num_heads}:
        raise UserError(f"{model.name}: its heads are not d_model / num_heads wide, as CTranslate2 requires")
    if config.source_last:
        raise UserError(
            f"{model.name}: its decoder reads the source last; only decoder_order self-cross-ffn can be exported"
        )
    return network


def positions(network: Transformer) -> int:
    """Return the number of positions that are exported on each side."""
    return network.max_positions or POSITIONS


def copy_weights(network: Transformer, spec: Any) -> None:
    """Copy every weight of a `network` into `spec`, a `ctranslate2.specs.TransformerSpec`."""
    encoder, decoder = spec.encoder, spec.decoder
    encoder.embeddings[0].weight = as_float32(network.src_embedding.weight)
    decoder.embeddings.weight = as_float32(network.tgt_embedding.weight)
    decoder.projection.weight = as_float32(network.output_weight)
    last = positions(network)
    encoder.position_encodings.encodings = as_float32(network.src_positions(0, last))
    decoder.position_encodings.encodings = as_float32(network.tgt_positions(0, last))
    for layer, lower in zip(encoder.layer, network.encoder, strict=True):
        copy_attention(lower.attention, lower.attention_norm, layer.self_attention)
        copy_feed_forward(lower, layer.ffn)
    for layer, upper in zip(decoder.layer, network.decoder, strict=True):
        copy_attention(upper.self_attention, upper.self_norm, layer.self_attention)
        copy_attention(upper.cross_attention, upper.cross_norm, layer.attention)
        copy_feed_forward(upper, layer.ffn)


def copy_attention(attention: Any, norm: Any, spec: Any) -> None:
    """Copy an attention layer with its norm.

    Args:
        attention: Our layer; self-attention has one matrix for queries, keys and values.
        norm: Our normalisation after the layer.
        spec: CTranslate2's layer to fill in.
    """
    layers = [attention.qkv] if len(spec.linear) == 2 else [attention.query, attention.kv]
    for linear, module in zip(spec.linear, [*layers, attention.mix.output], strict=True):
        linear.weight = as_float32(module.weight)
    spec.layer_norm.gamma, spec.layer_norm.beta = as_float32(norm.norm.weight), as_float32(norm.norm.bias)


def copy_feed_forward(layer: Any, spec: Any) -> None:
    """Copy a feed-forward `layer` with its norm into CTranslate2's `spec`."""
    norm, feed_forward = layer.feed_forward_norm.norm, layer.feed_forward
    for linear, module in ((spec.linear_0, feed_forward.inner), (spec.linear_1, feed_forward.outer)):
        linear.weight, linear.bias = as_float32(module.weight), as_float32(module.bias)
    spec.layer_norm.gamma, spec.layer_norm.beta = as_float32(norm.weight), as_float32(norm.bias)


def as_float32(tensor: torch.Tensor) -> np.ndarray:
    """Convert a tensor of any shape to float32 on the CPU.

    Args:
        tensor: On any device; may require gradients.

    Returns:
        An array of the same shape.
    """
    return tensor.detach().float().cpu().numpy()


def pieces(subwords: Subwords) -> list[str]:
    """Return the subword pieces in the order of their ids."""
    return [subwords.model.id_to_piece(number) for number in range(len(subwords))]


def ctranslate2_search(model: Model, compute_type: str) -> Decoder:
    """Build a decoder that searches with CTranslate2.

    All outputs of a batch share the length limit of its longest source. Scores are those of CTranslate2.

    Args:
        model: The model, with its decoding.
        compute_type: Type of the matrix multiplications, e.g. float32 or int8.

    Returns:
        The decoder, for sources of at most `LONGEST_SOURCE` symbols.

    Raises:
        UserError: CTranslate2 is not installed, or does not support the model, search or type.
    """
    alpha = length_exponent(model.name, model.config)
    translator = load_translator(model, compute_type)
    source, target = model.symbols
    assert source is not None and isinstance(target, Subwords), "`export` refuses models without subwords"
    last = positions(plain_transformer(model)) - 1  # CTranslate2 adds EOS
    src_pieces, tgt_ids = pieces(source), {piece: number for number, piece in enumerate(pieces(target))}

    def search(batch: Any) -> list[Hypothesis]:
        lengths = batch.expected_length.tolist()  # without EOS
        sentences = zip(batch.src.tolist(), lengths, strict=True)
        limits = output_limits(model.trained.model, batch, model.config.max_extra_length)
        found = translator.translate_batch(
            [[src_pieces[number] for number in row[:length]] for row, length in sentences],
            beam_size=model.config.beam_size,
            length_penalty=alpha,
            min_decoding_length=0,
            max_decoding_length=min(int(limits.max()), last),
            max_input_length=0,
            return_scores=True,
        )
        best = ((result.hypotheses[0], result.scores[0]) for result in found)
        return [
            Hypothesis([tgt_ids[piece] for piece in output], score * (len(output) + 1) ** alpha, score)
            for output, score in best
        ]

    return search


def load_translator(model: Model, compute_type: str) -> Any:
    """Export a model to a temporary folder, and load it with CTranslate2.

    Args:
        model: The model.
        compute_type: Type of the matrix multiplications, e.g. float32 or int8.

    Returns:
        Its `ctranslate2.Translator`, on the device of the model.

    Raises:
        UserError: CTranslate2 is not installed, or does not support the model or type.
    """
    with tempfile.TemporaryDirectory() as folder:
        export(model, Path(folder, "model"))
        from ctranslate2 import Translator  # `export` raised if it is not installed

        threads, device = torch.get_num_threads(), model.trained.device.type
        try:
            return Translator(f"{folder}/model", device=device, compute_type=compute_type, intra_threads=threads)
        except ValueError as error:
            raise UserError(f"--ctranslate2 {compute_type}: {error}") from error


def refuse_language_model(name: str, config: DecodingConfig) -> None:
    """Check that a decoding, of the model `name`, uses no language model.

    Raises:
        UserError: It uses one.
    """
    if config.reads_language_model:
        raise UserError(f"{name}: its decoding uses a language model, which CTranslate2 does not support")


def length_exponent(name: str, config: DecodingConfig) -> float:
    """Return the exponent of CTranslate2's length penalty, length^alpha, that ranks hypotheses like a decoding.

    Raises:
        UserError: CTranslate2 can't search like this decoding.
    """
    refuse_language_model(name, config)
    if config.length_normalisation == "gnmt" and config.length_penalty:
        raise UserError(
            f"{name}: its hypotheses are ranked by ((5 + length) / 6)^{config.length_penalty:g}, CTranslate2's by "
            "length^alpha; choose another decoding, such as --decoding length_normalisation=length,alpha=1"
        )
    return config.length_penalty if config.length_normalisation == "length" else 0.0
