"""Models that CTranslate2 can't express are refused before anything is written."""

from types import SimpleNamespace

import pytest

from pipeline.config import DecodingConfig
from pipeline.core.errors import UserError
from pipeline.models.architectures import build_model
from pipeline.models.transformer.settings import TransformerConfig
from pipeline.models.weighted_transformer.settings import WeightedTransformerConfig
from reprise.ctranslate2 import length_exponent, plain_transformer

SMALL = {"num_layers": 1, "d_model": 16, "d_ff": 16, "num_heads": 4}
PLAIN = {"architecture": "transformer", **SMALL}


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (TransformerConfig(**PLAIN, d_k=3), "heads are not d_model / num_heads wide"),
        (TransformerConfig(**PLAIN, decoder_order="self-ffn-cross"), "decoder reads the source last"),
        (WeightedTransformerConfig(architecture="weighted_transformer", **SMALL), "is a weighted_transformer"),
    ],
)
def test_export_refuses_models_that_ctranslate2_does_not_have(config, why):
    network, spec = build_model(config, (20, 20)), SimpleNamespace(model=config, fusion=None)
    model = SimpleNamespace(name="run", trained=SimpleNamespace(spec=spec, model=network))
    with pytest.raises(UserError, match=why):
        plain_transformer(model)


@pytest.mark.parametrize(
    ("decoding", "why"),
    [
        ({"length_penalty": 0.6}, r"ranked by \(\(5 \+ length\) / 6\)\^0.6, CTranslate2's by length\^alpha"),
        ({"length_normalisation": "none", "ngram_order": 3, "lm_weight": 0.2}, "decoding uses a language model"),
    ],
)
def test_export_refuses_a_search_that_ctranslate2_does_not_have(decoding, why):
    with pytest.raises(UserError, match=why):
        length_exponent("run", DecodingConfig.model_validate(decoding))
