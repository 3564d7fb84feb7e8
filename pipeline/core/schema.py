"""Closed records for settings files, and error messages that name file, key and value."""

import difflib
import re
from collections.abc import Collection, Iterable, Set
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from pipeline.core.errors import UserError, count_of, one_line, shown
from pipeline.core.json_csv import parse
from pipeline.core.yaml_file import load_yaml

LARGEST_NUMBER = 1e30
MOST_FAULTS = 20
"""Lines of an error message; further faults are only counted."""


class Closed(BaseModel):
    """A frozen record that refuses unknown keys.

    Attributes:
        read_by: By setting and choice, the settings that are only read for this choice.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, protected_namespaces=(), defer_build=True)

    read_by: ClassVar[dict[str, dict[str, list[str]]]] = {}


def refuse_unread(settings: Closed, where: str, written: Iterable[str] | None = None) -> None:
    """Refuse `written` settings that differ from their default although another one leaves them unread.

    The `settings` are at `where`; None checks all.

    Raises:
        UserError: A setting is not read.
    """
    for key, readers in settings.read_by.items():
        chosen = getattr(settings, key)
        for name in dict.fromkeys(chain(*readers.values())):
            value, default = getattr(settings, name), type(settings).model_fields[name].default
            is_asked = written is None or name in written
            if is_asked and name not in readers.get(chosen, ()) and value != default:
                among = " or ".join(choice for choice, names in readers.items() if name in names)
                raise UserError(
                    f"{where}: {name}: has an effect only if {key} is {among}, not {chosen}, got {shown(value)}; "
                    f"if it is inherited, write `{name}: {'null' if default is None else shown(default)}`"
                )


def no_truth_value(value: Any) -> Any:
    """Refuse a boolean, which Python counts as an integer."""
    if isinstance(value, bool):
        raise ValueError("Input should be a valid number")
    return value


def within_bounds(value: float) -> float:
    """Refuse a value that overflows in float32."""
    if abs(value) > LARGEST_NUMBER:
        raise ValueError(f"Input should be between -{LARGEST_NUMBER:g} and {LARGEST_NUMBER:g}")
    return value


# `1e-4` is a text in YAML, and so are `inf` and `nan`.
NUMBER = BeforeValidator(no_truth_value)
# Bounds on both sides, because useless values would overflow or take all memory.
Number = Annotated[float, Field(strict=False, allow_inf_nan=False), NUMBER, AfterValidator(within_bounds)]
Probability = Annotated[float, Field(ge=0, lt=1, strict=False), NUMBER]
Positive = Annotated[float, Field(gt=0, le=1e30, strict=False, allow_inf_nan=False), NUMBER]
Count = Annotated[int, Field(ge=1, le=10**9)]
CountOrNone = Annotated[int, Field(ge=0, le=10**9)]
Bytes = Annotated[int, Field(ge=1, le=10**15)]
Width = Annotated[int, Field(ge=1, le=2**17)]
"""Units, layers or positions of a model."""
Seed = Annotated[int, Field(ge=0, lt=2**31)]


def require_known(name: Any, names: Iterable[str], where: str) -> None:
    """Check that the `name` at `where`, file and key, is one of `names`.

    Raises:
        UserError: It is not. The message lists the names and the nearest spelling.
    """
    if fault := unknown(name, names, where):
        raise UserError(fault)


def unknown(name: Any, names: Iterable[str], where: str) -> str | None:
    """Return the error message if the `name` at `where`, file and key, is none of `names`, else None."""
    names = names if isinstance(names, dict | Set) else set(names)
    if name in names:
        return None
    return f"{where}: unknown name {shown(name)}; allowed: {choices(name, names)}{nearest(name, names)}"


NAME = r"^[\w-]+$"
"""Pattern of names that become parts of paths, of patterns of rules and of command lines."""


def require_name(name: str, path: Path) -> None:
    """Check that the `name` of the file or folder `path`, which defines something, can be a part of other paths.

    Raises:
        UserError: It has other characters.
    """
    if not re.fullmatch(NAME, name):
        raise UserError(f"{shown(str(path))}: a name has only letters, digits, `-` and `_`; rename it")


MOST_CHOICES = 40
"""Largest number of allowed names that a message lists in full."""


def choices(name: Any, names: Collection[str]) -> str:
    """Return the allowed `names` for an error message; of very many, only those that resemble `name`."""
    if len(names) <= MOST_CHOICES:
        return ", ".join(sorted(names)) or "none"
    alike = {allowed: difflib.SequenceMatcher(None, str(name), allowed).ratio() for allowed in names}
    listed = sorted(names, key=lambda allowed: (-alike[allowed], allowed))[:20]
    return f"{', '.join(sorted(listed))} and {count_of(len(names) - len(listed), 'other')}"


def nearest(name: Any, names: Iterable[str]) -> str:
    """Return a suggestion with the one of `names` nearest to `name` for an error message, or an empty text."""
    by_case, word = {allowed.lower(): allowed for allowed in sorted(names)}, str(name).lower()
    longer = sorted((allowed for allowed in by_case if len(word) > 3 and allowed.startswith(word)), key=len)
    close = longer or difflib.get_close_matches(word, by_case, n=1, cutoff=0.6)
    return f"; did you mean {by_case[close[0]]!r}?" if close else ""


@cache
def adapter(kind: Any) -> TypeAdapter:
    """Build the validator of a type; this takes a hundred times as long as a validation."""
    return TypeAdapter(kind)


@cache
def json_schema(kind: Any) -> dict[str, Any]:
    """Build the JSON schema of a type, which messages about unknown keys read."""
    return adapter(kind).json_schema()


def validate(kind: Any, value: Any, where: str) -> Any:
    """Return a `value` as a valid record of a `kind`, a class or annotated union; `where` names its place.

    Raises:
        UserError: One line per fault, with file, key, value and what is allowed.
    """
    try:
        return adapter(kind).validate_python(value)
    except ValidationError as error:
        schema, found = json_schema(kind), faults_by_key(error.errors(), value)
        lines = [
            ": ".join([where, *filter(None, [".".join(map(shown_key, place))]), explain_faults(faults, schema, place)])
            for place, faults in islice(found.items(), MOST_FAULTS)
        ]
        more = [f"{where}: and {count_of(len(found) - MOST_FAULTS, 'more fault')}"] if len(found) > MOST_FAULTS else []
        raise UserError("\n".join(map(one_line, lines + more))) from error


def load_yaml_as(kind: Any, path: Path) -> Any:
    """Return the content of a YAML file as a valid record; see `validate`.

    Raises:
        UserError: The file is missing or not YAML, or as `validate` does.
    """
    return validate(kind, load_yaml(path), str(path))


def parse_json(kind: Any, text: str, where: str) -> Any:
    """Return the JSON `text` as a valid record; see `validate`.

    Raises:
        UserError: The text is not JSON, or as `validate` does.
    """
    try:
        return validate(kind, parse(text), where)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not valid JSON ({error}): {shown(text)}") from error


def faults_by_key(faults: list[Any], value: Any) -> dict[tuple, list[Any]]:
    """Return the `faults` of a pydantic `ValidationError` about `value` by the keys that lead to them.

    Of a union without a tag, only the faults of the member that matched deepest are kept.
    """
    found: dict[tuple, list[Any]] = {}
    for fault in faults:
        found.setdefault(key_path(fault, value), []).append(fault)
    above = {place[:depth] for place in found for depth in range(len(place))}
    return {place: at for place, at in found.items() if place not in above}


def key_path(fault: Any, value: Any) -> tuple:
    """Return the keys from the top of `value` to a pydantic `fault`, with tags of unions, without names of types."""
    place = []
    for step in fault["loc"]:
        if isinstance(value, dict) and (step in value or (fault["type"] == "missing" and step == fault["loc"][-1])):
            value = value.get(step)
        elif isinstance(value, list | tuple) and isinstance(step, int):
            value = value[step] if step < len(value) else None  # the missing element of a pair
        elif not (isinstance(value, dict) and step in value.values()):
            continue
        place.append(step)
    return tuple(place)


def explain_faults(faults: list[Any], schema: dict, place: tuple) -> str:
    """Return what is wrong by `faults` of pydantic at `place`, what was found, and the nearest name in the `schema`."""
    fault, context = faults[0], faults[0].get("ctx", {})
    match fault["type"]:
        case "extra_forbidden":
            allowed = allowed_keys(schema, place[:-1])
            return f"unknown key; allowed: {', '.join(allowed)}{nearest(place[-1], allowed)}"
        case "missing":
            return "missing key"
        case "union_tag_invalid":
            tags = re.findall(r"'([^']*)'", context["expected_tags"])
            key, tag = context["discriminator"].strip("'"), context["tag"]
            return f"{key}: unknown name {shown(tag)}; allowed: {', '.join(tags)}{nearest(tag, tags)}"
        case "union_tag_not_found":
            return f"missing key {context['discriminator']}"
    expected = dict.fromkeys(fault["msg"].removeprefix("Value error, ") for fault in faults)
    what = " or ".join(expected).replace(" or Input should be ", " or ")
    if what.startswith("Input should be a valid dictionary"):
        what = "Input should be a mapping, {key: value}"
    got = "" if isinstance(fault["input"], dict) else f", got {shown(fault['input'])}"
    return what + got + nearest(fault["input"], re.findall(r"'([^']*)'", context.get("expected", "")))


def shown_key(key: str | int) -> str:
    """Return a key for an error message: on one line, and cut if it is long."""
    text = str(key)
    return text if text.isprintable() and len(text) <= 80 else shown(text)


def allowed_keys(schema: dict, place: tuple) -> list[str]:
    """Return the keys of the record at `place` in a JSON `schema`; the tag of a union counts as a step."""
    records = alternatives(schema, schema)
    for step in place:
        inner = []
        for record in records:
            if isinstance(step, int):
                inner.append(record.get("items"))
            elif step in record.get("properties", {}):
                inner.append(record["properties"][step])
            elif step in {value.get("const") for value in record.get("properties", {}).values()}:
                inner.append(record)
            else:
                inner += [record.get("additionalProperties"), *record.get("patternProperties", {}).values()]
        records = [option for part in inner if part for option in alternatives(part, schema)]
    return sorted({key for record in records for key in record.get("properties", {})})


def alternatives(part: dict, schema: dict) -> list[dict]:
    """Return a `part` of a whole JSON `schema` with its references and unions resolved."""
    if "$ref" in part:
        return alternatives(schema["$defs"][part["$ref"].rsplit("/", 1)[-1]], schema)
    options = part.get("anyOf", part.get("oneOf"))
    return (
        [part]
        if options is None
        else [alternative for option in options for alternative in alternatives(option, schema)]
    )
