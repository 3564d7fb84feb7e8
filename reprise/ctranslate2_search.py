"""Beam search by CTranslate2 in the place of our own: for plain Transformers, on a CPU in eight-bit integers, too."""

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
    """The search that `model` is asked for, its products in such `numbers` as float32 or int8.

    An output's limit is that of the longest source beside it, or the last position that was exported. Scores are
    CTranslate2's.

    Raises:
        UserError: CTranslate2 isn't installed, or has no such model, search or numbers; in the search: a source has
            more symbols than positions were exported.
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
            raise UserError(f"a line of {longest} symbols; CTranslate2 reads up to {last}: split it, or do without")
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
    """The `Translator` of an exported model. Raises UserError where it can't compute in `numbers` here."""
    from ctranslate2 import Translator  # what exports has told where it is missing

    try:
        return Translator(str(folder), device=device, compute_type=numbers, intra_threads=torch.get_num_threads())
    except ValueError as error:
        raise UserError(f"--ctranslate2 {numbers}: {error}") from error


def exponent(name: str, config: DecodingConfig) -> float:
    """By how much of the length CTranslate2 divides. Raises UserError where the search is none that it has."""
    if config.reads_language_model:
        raise UserError(f"{name}: a language model takes part in its decoding; CTranslate2 searches without")
    if config.length_normalisation == "gnmt" and config.length_penalty:
        raise UserError(
            f"{name}: its hypotheses are ranked by ((5 + length) / 6)^{config.length_penalty:g}, CTranslate2's by "
            "length^alpha; ask for another decoding, such as --decoding length_normalisation=length,alpha=1"
        )
    return config.length_penalty if config.length_normalisation == "length" else 0.0
