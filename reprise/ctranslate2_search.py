"""Beam search by CTranslate2 instead of our own: for plain Transformers, also with 8-bit weights on a CPU."""

import tempfile
from pathlib import Path
from typing import Any

import torch

from pipeline.config import DecodingConfig
from pipeline.core.errors import UserError
from pipeline.data.text.vocabulary import Subwords
from pipeline.decoding.choose_search import Decoder
from pipeline.search.beam_search import Hypothesis
from pipeline.search.interface import output_limits
from reprise.ctranslate2_export import export, pieces, plain_transformer, positions
from reprise.model import Model


def ctranslate2_search(model: Model, numbers: str) -> Decoder:
    """Build a decoder that searches with CTranslate2.

    All outputs of a batch share the length limit of its longest source. Scores are those of CTranslate2.

    Args:
        model: The model, with its decoding.
        numbers: Type of the matrix multiplications, e.g. float32 or int8.

    Raises:
        UserError: CTranslate2 is not installed, or does not support the model, search or type. The search raises it
            for a source with more symbols than exported positions.
    """
    alpha = exponent(model.name, model.config)
    with tempfile.TemporaryDirectory() as folder:
        export(model, Path(folder, "model"))
        translator = opened(Path(folder, "model"), numbers, model.trained.device.type)
    source, target = model.symbols
    assert source is not None and isinstance(target, Subwords), "`export` refuses what reads or writes none"
    last = positions(plain_transformer(model)) - 1  # the others are for EOS, which CTranslate2 adds
    read, written = pieces(source), {piece: number for number, piece in enumerate(pieces(target))}

    def search(batch: Any) -> list[Hypothesis]:
        lengths = batch.expected_length.tolist()  # without EOS
        if (longest := max(lengths)) > last:
            raise UserError(
                f"a line of {longest} symbols; CTranslate2 reads up to {last}: split it, or omit --ctranslate2"
            )
        sentences = zip(batch.src.tolist(), lengths, strict=True)
        limits = output_limits(model.trained.model, batch, model.config.max_extra_length)
        found = translator.translate_batch(
            [[read[number] for number in row[:length]] for row, length in sentences],
            beam_size=model.config.beam_size,
            length_penalty=alpha,
            min_decoding_length=0,
            max_decoding_length=min(int(limits.max()), last),
            max_input_length=0,
            return_scores=True,
        )
        best = ((one.hypotheses[0], one.scores[0]) for one in found)
        return [
            Hypothesis([written[piece] for piece in output], score * (len(output) + 1) ** alpha, score)
            for output, score in best
        ]

    return search


def opened(folder: Path, numbers: str, device: str) -> Any:
    """Open the `Translator` of an exported model. Raises UserError if it does not support `numbers` here."""
    from ctranslate2 import Translator  # `export` raised if it is not installed

    try:
        return Translator(str(folder), device=device, compute_type=numbers, intra_threads=torch.get_num_threads())
    except ValueError as error:
        raise UserError(f"--ctranslate2 {numbers}: {error}") from error


def exponent(name: str, config: DecodingConfig) -> float:
    """Return the exponent of CTranslate2's length penalty. Raises UserError for a search that it lacks."""
    if config.reads_language_model:
        raise UserError(f"{name}: a language model takes part in its decoding; CTranslate2 searches without")
    if config.length_normalisation == "gnmt" and config.length_penalty:
        raise UserError(
            f"{name}: its hypotheses are ranked by ((5 + length) / 6)^{config.length_penalty:g}, CTranslate2's by "
            "length^alpha; ask for another decoding, such as --decoding length_normalisation=length,alpha=1"
        )
    return config.length_penalty if config.length_normalisation == "length" else 0.0
