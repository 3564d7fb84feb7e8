"""Closed records: what every settings file is checked against, and the errors that name file, key and value."""

import difflib
import re
from collections.abc import Iterable
from functools import cache
from itertools import chain
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from pipeline.core.errors import UserError
from pipeline.core.json_file import parse
from pipeline.core.shown_text import one_line, shown
from pipeline.core.yaml_file import load_yaml as load_yaml

MOST_FAULTS = 20
"""Lines of an error; how many more there are is counted."""


class Closed(BaseModel):
    """A frozen record that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, protected_namespaces=())

    read_by: ClassVar[dict[str, dict[str, list[str]]]] = {}
    """By a setting, and what it may be: the settings that are read then, of those that are not always."""


def refuse_unread(settings: Closed, where: str, written: Iterable[str] | None = None) -> None:
    """Raises UserError for a setting that is not at its default though a choice beside it leaves it unread.

    written: those that may be at fault; None: all.
    """
    for key, readers in settings.read_by.items():
        chosen = getattr(settings, key)
        for name in dict.fromkeys(chain(*readers.values())):
            value, default = getattr(settings, name), type(settings).model_fields[name].default
            is_asked = written is None or name in written
            if is_asked and name not in readers.get(chosen, ()) and value != default:
                among = " or ".join(choice for choice, names in readers.items() if name in names)
                raise UserError(
                    f"{where}: {name}: is read where {key} is {among}, not {chosen}, got {shown(value)}; "
                    f"where it is inherited, write `{name}: {'null' if default is None else shown(default)}`"
                )


def no_truth_value(value: Any) -> Any:
    """`true` is no 1. Raises ValueError."""
    if isinstance(value, bool):
        raise ValueError("Input should be a valid number")
    return value


# `1e-4` is a text in YAML, and so are `inf` and `nan`.
NUMBER = BeforeValidator(no_truth_value)
Number = Annotated[float, Field(strict=False, allow_inf_nan=False), NUMBER]
Probability = Annotated[float, Field(ge=0, lt=1, strict=False), NUMBER]
Positive = Annotated[float, Field(gt=0, strict=False, allow_inf_nan=False), NUMBER]
Count = Annotated[int, Field(ge=1)]


def known(name: Any, names: Iterable[str], where: str) -> None:
    """Raises UserError, with what is allowed and the nearest spelling, unless `name` is one of `names`."""
    if fault := unknown(name, names, where):
        raise UserError(fault)


def unknown(name: Any, names: Iterable[str], where: str) -> str | None:
    """The line that says so when `name` is none of `names`."""
    names = set(names)
    if name in names:
        return None
    return f"{where}: unknown name {shown(name)}; allowed: {', '.join(sorted(names)) or 'none'}{nearest(name, names)}"


def nearest(name: Any, names: Iterable[str]) -> str:
    """What to add to an error about an unknown name: the nearest of those that exist, or nothing."""
    by_case = {one.lower(): one for one in sorted(names)}
    close = difflib.get_close_matches(str(name).lower(), by_case, n=1, cutoff=0.6)
    return f"; did you mean {by_case[close[0]]!r}?" if close else ""


@cache
def adapter(kind: Any) -> TypeAdapter:
    """Building one takes a hundred times as long as a validation by it."""
    return TypeAdapter(kind)


def validate(kind: Any, value: Any, where: str) -> Any:
    """`value` as a `kind`, a record class or an annotated union of them.

    Raises:
        UserError: with file, key, value and what is allowed, one line a fault.
    """
    try:
        return adapter(kind).validate_python(value)
    except ValidationError as error:
        schema = adapter(kind).json_schema()
        lines = [
            ": ".join([where, *filter(None, [".".join(map(shown_key, place))]), explain(faults, schema, place)])
            for place, faults in by_place(error.errors(), value).items()
        ]
        more = [f"{where}: and {len(lines) - MOST_FAULTS} faults more"] if len(lines) > MOST_FAULTS else []
        raise UserError("\n".join(map(one_line, lines[:MOST_FAULTS] + more))) from error


def parse_json(kind: Any, text: str, where: str) -> Any:
    """`validate` of JSON. Raises UserError, too, when it is none."""
    try:
        return validate(kind, parse(text), where)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not valid JSON ({error}): {shown(text)}") from error


def by_place(faults: list[Any], value: Any) -> dict[tuple, list[Any]]:
    """Faults by the keys that lead to them; of a union without a tag, those of the member that got farthest."""
    found: dict[tuple, list[Any]] = {}
    for fault in faults:
        found.setdefault(place_of(fault, value), []).append(fault)
    return {
        place: at
        for place, at in found.items()
        if not any(len(place) < len(deeper) and place == deeper[: len(place)] for deeper in found)
    }


def place_of(fault: Any, value: Any) -> tuple:
    """Keys from the file's top to a fault, and tags of unions on the way, but no names of types."""
    place = []
    for step in fault["loc"]:
        if isinstance(value, dict) and (step in value or (fault["type"] == "missing" and step == fault["loc"][-1])):
            value = value.get(step)
        elif isinstance(value, list | tuple) and isinstance(step, int):
            value = value[step]
        elif not (isinstance(value, dict) and step in value.values()):
            continue
        place.append(step)
    return tuple(place)


def explain(faults: list[Any], schema: dict, place: tuple) -> str:
    """The faults of one place in words that name the value and what is allowed."""
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
    what = " or ".join(dict.fromkeys(one["msg"].removeprefix("Value error, ") for one in faults))
    got = "" if isinstance(fault["input"], dict) else f", got {shown(fault['input'])}"
    return what + got + nearest(fault["input"], re.findall(r"'([^']*)'", context.get("expected", "")))


def shown_key(key: str | int) -> str:
    """A key in an error: on one line, and cut where it is long."""
    text = str(key)
    return text if text.isprintable() and len(text) <= 80 else shown(text)


def allowed_keys(schema: dict, place: tuple) -> list[str]:
    """Keys of the record at `place` in a JSON schema; the tag of a union counts as a step."""
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
    """`part` with its references and unions resolved."""
    if "$ref" in part:
        return alternatives(schema["$defs"][part["$ref"].rsplit("/", 1)[-1]], schema)
    options = part.get("anyOf", part.get("oneOf"))
    return [part] if options is None else [one for option in options for one in alternatives(option, schema)]
