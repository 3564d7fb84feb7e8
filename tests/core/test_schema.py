"""Faults of records are one line each: file, key, value, what is allowed, and the nearest spelling."""

import importlib
import pkgutil
import re
from importlib.util import find_spec
from typing import Annotated, Literal

import pytest
from pydantic import Field, TypeAdapter, ValidationError

from pipeline.core import schema
from pipeline.core.errors import UserError
from pipeline.core.json_csv import read_json
from pipeline.core.provenance import ROOT


class Inner(schema.Closed):
    system: str
    tries: list[schema.Count] = Field(default=[])


class Cat(schema.Closed):
    kind: Literal["cat"]
    lives: schema.Count


class Dog(schema.Closed):
    kind: Literal["dog"]


class Outer(schema.Closed):
    mode: Literal["none", "length", "gnmt"] = "none"
    terms: list[str | Inner] = Field(default=[])
    pets: dict[str, Annotated[Cat | Dog, Field(discriminator="kind")]] = Field(default={})
    splits: dict[Literal["train", "dev"], schema.Count] = Field(default={})


MODES, SPLITS = "Input should be 'none', 'length' or 'gnmt'", "Input should be 'train' or 'dev'"
KINDS = "unknown name 'cta'; allowed: cat, dog"


FAULTS = {
    "unknown key": (
        {"mod": "none"},
        "f: mod: unknown key; allowed: mode, pets, splits, terms; did you mean 'mode'?",
    ),
    "unknown key far from all": ({"zzz": 1}, "f: zzz: unknown key; allowed: mode, pets, splits, terms"),
    "bad choice": ({"mode": "gnm"}, f"f: mode: {MODES}, got 'gnm'; did you mean 'gnmt'?"),
    "bad key": ({"splits": {"trian": 1}}, f"f: splits.trian: {SPLITS}, got 'trian'; did you mean 'train'?"),
    "bad tag": ({"pets": {"Tom": {"kind": "cta"}}}, f"f: pets.Tom: kind: {KINDS}; did you mean 'cat'?"),
    "no tag": ({"pets": {"Tom": {}}}, "f: pets.Tom: missing key 'kind'"),
    "missing key": ({"pets": {"Tom": {"kind": "cat"}}}, "f: pets.Tom.cat.lives: missing key"),
    "union": (
        {"terms": ["a", {"sytem": "b"}]},
        "f: terms.1.system: missing key\nf: terms.1.sytem: unknown key; allowed: system, tries; did you mean 'system'?",
    ),
    "line break in a value": ({"mode": "a\nb"}, rf"f: mode: {MODES}, got 'a\nb'"),
    "line break in a key": ({"a\nb": 1}, r"f: 'a\nb': unknown key; allowed: mode, pets, splits, terms"),
    "no record": ([1], "f: Input should be a mapping, {key: value}, got [1]"),
}


@pytest.mark.parametrize(("value", "message"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_a_line(value, message):
    with pytest.raises(UserError) as caught:
        schema.validate(Outer, value, "f")
    assert str(caught.value) == message


def test_a_long_value_is_cut():
    with pytest.raises(UserError) as caught:
        schema.validate(Outer, {"terms": 5 * ["x"] + [{"system": "y", "tries": "z" * 10_000}]}, "f")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 10_000], ids=["deep", "a long number"])
def test_json_that_python_refuses_is_a_short_line(tmp_path, text):
    (tmp_path / "file.json").write_text(text)
    for read in (lambda: schema.parse_json(Outer, text, "--decoding"), lambda: read_json(tmp_path / "file.json")):
        with pytest.raises(UserError, match="not valid JSON") as refused:
            read()
        assert len(str(refused.value)) < 400


def test_error_shows_the_first_of_many_faults():
    with pytest.raises(UserError) as caught:
        schema.validate(Outer, {f"key{n}": 1 for n in range(100)}, "f")
    lines = str(caught.value).split("\n")
    assert len(lines) == schema.MOST_FAULTS + 1 and lines[-1] == f"f: and {100 - schema.MOST_FAULTS} more faults"


def test_the_nearest_spelling_is_found_whatever_the_case():
    assert schema.nearest("rnn", ["RNN", "EMB"]) == "; did you mean 'RNN'?"
    assert schema.nearest("bleu", ["gleu", "bleu_tok", "bleu_paper"]) == "; did you mean 'bleu_tok'?"
    assert schema.nearest("zebra", ["RNN", "EMB"]) == ""


def test_a_value_that_is_not_given_is_one_that_could_be():
    """Pydantic takes a default as it is."""
    for package in ("analysis", "config", "core", "data", "models", "papers"):
        for module in pkgutil.walk_packages([str(ROOT / "pipeline" / package)], f"pipeline.{package}."):
            if find_spec("triton") or not module.name.endswith("_programs"):
                importlib.import_module(module.name)
    records = [schema.Closed]
    for record in records:
        records += [inner for inner in record.__subclasses__() if inner not in records]
    checked = 0
    for record in records:
        for name, field in record.model_fields.items() if record.__module__.startswith("pipeline.") else ():
            if not field.is_required():
                kind = TypeAdapter(field.rebuild_annotation(), config=None)
                try:
                    kind.validate_python(field.get_default(call_default_factory=True))
                except ValidationError as error:
                    pytest.fail(f"{record.__name__}.{name}: {error}")
                checked += 1
    assert checked > 300


@pytest.mark.parametrize("kind", [schema.Number, schema.Positive, schema.Probability])
@pytest.mark.parametrize("value", ["inf", "nan", "1e400", True, False, float("inf")])
def test_a_number_of_settings_is_finite_and_no_truth_value(kind, value):
    with pytest.raises(UserError, match=r"f: Input should be .*, got "):
        schema.validate(kind, value, "f")
    assert schema.validate(kind, "1e-4", "f") == 1e-4


@pytest.mark.parametrize("count", [schema.MOST_CHOICES, schema.MOST_CHOICES + 1, 400])
def test_of_very_many_allowed_names_only_similar_ones_are_listed(count):
    names = [f"weighted/{chr(97 + k % 26) * 3}{k}" for k in range(count - 1)]
    message = schema.unknown("atention/base", [*names, "attention/base"], "f: key")
    form = r"f: key: unknown name 'atention/base'; allowed: (.*?)(?: and (\d+) others)?; did you mean '(.*)'\?"
    listed, others, meant = re.fullmatch(form, message).groups()
    shown = listed.split(", ")
    assert meant == "attention/base" and {meant} <= set(shown) <= {*names, meant}
    assert len(shown) == (count if count == schema.MOST_CHOICES else 20) and len(shown) + int(others or 0) == count
