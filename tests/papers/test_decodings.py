"""Decodings inherit from one another like systems, within a paper and across papers."""

from types import SimpleNamespace

import pytest

from pipeline.config import DecodingConfig
from pipeline.core.errors import UserError
from pipeline.core.schema import validate
from pipeline.papers.catalogue import paper_decoding
from pipeline.papers.paper import DecodingEntry


def papers(**written):
    """Papers that have nothing but decodings."""
    return {
        paper: SimpleNamespace(
            decodings={name: validate(DecodingEntry, entry, f"{paper}.{name}") for name, entry in entries.items()}
        )
        for paper, entries in written.items()
    }


def test_differences_apply_over_the_bases_from_the_outermost_on():
    known = papers(
        one={"final": {"beam_size": 7, "average_last": 3}, "wide": {"base": "final", "beam_size": 9}},
        two={"last": {"base": "one/wide", "average_last": 1}, "again": {"base": "last", "length_penalty": 0}},
        three={"final": {"beam_size": 7}, "default": {"base": "final", "beam_size": 4}},
    )
    assert paper_decoding(known, "one", "wide") == DecodingConfig(beam_size=9, average_last=3)
    assert paper_decoding(known, "two", "last") == DecodingConfig(beam_size=9, average_last=1)
    assert paper_decoding(known, "two", "again") == DecodingConfig(beam_size=9, average_last=1, length_penalty=0)
    assert paper_decoding(known, "three", "default") == DecodingConfig()  # a difference, too


def test_a_language_model_keeps_its_paper():
    shallow, mine = {"language_model": "lm@text", "lm_weight": 0.3}, {"base": "one/shallow"}
    known = papers(one={"shallow": shallow}, two={"mine": mine, "its": {"base": "three/a"}}, three={})
    known["three"].decodings["a"] = DecodingEntry(language_model="one/lm@text", lm_weight=0.3)
    found = [
        paper_decoding(known, *name).language_model for name in (("one", "shallow"), ("two", "mine"), ("two", "its"))
    ]
    assert found == ["lm@text", "one/lm@text", "one/lm@text"]


def test_decoding_is_validated_after_its_bases_are_applied():
    shallow = {"shallow": {"language_model": "lm@text"}, "weighed": {"base": "shallow", "lm_weight": 0.5}}
    known = papers(one=shallow | {"alone": {"lm_weight": 0.5}})
    assert paper_decoding(known, "one", "weighed").lm_weight == 0.5
    with pytest.raises(UserError, match=r"one/paper\.yaml: decodings\.alone: .*need a language_model"):
        paper_decoding(known, "one", "alone")
