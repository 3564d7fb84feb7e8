"""Write a plain Transformer for CTranslate2, which decodes several times as fast.

    reprise export attention/base/wmt14-en-de/1 base-ct2 --quantization int8

The folder is what `ctranslate2.Translator` opens; `subwords.model` in it, of sentencepiece, makes pieces of tokenised
text (`encode(line, out_type=str)`) and text of pieces. Without a length penalty both rank hypotheses alike; with one
CTranslate2's is length^alpha, while the papers' is ((5 + length) / 6)^alpha.
"""

import argparse
import logging
from pathlib import Path

from reprise.opening import add_model_arguments, opened

log = logging.getLogger(__name__)
TYPES = ("int8", "int16", "float16", "bfloat16")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument("out", type=Path, metavar="FOLDER", help="to write")
    parser.add_argument("--quantization", choices=TYPES, help="of the weights; default: none, float32")


def run(args: argparse.Namespace) -> None:
    from reprise.ctranslate2_export import export  # brings torch

    model = opened(args)
    export(model, args.out, args.quantization)
    log.info("%s: %s for CTranslate2", args.out, model.name)
