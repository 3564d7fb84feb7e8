"""Closed records: what every settings file is checked against, and the errors that name file, key and value."""

from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pipeline.errors import UserError

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same language, read in C where PyYAML was built so


class Closed(BaseModel):
    """A frozen record that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, protected_namespaces=())


Probability = Annotated[float, Field(ge=0, lt=1, strict=False)]
Count = Annotated[int, Field(ge=1)]


def validate(kind: Any, value: Any, where: str) -> Any:
    """`value` as a `kind`, a record class or an annotated union of them.

    Raises:
        UserError: with file, key, value and what is allowed, one line a fault.
    """
    adapter = TypeAdapter(kind)
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        schema = adapter.json_schema()
        lines = [
            f"{where}: {'.'.join(map(str, fault['loc'])) or 'file'}: {explain(fault, schema)}"
            for fault in error.errors()
        ]
        raise UserError("\n".join(lines)) from error


def explain(fault: dict, schema: dict) -> str:
    """One pydantic fault in words that name the value and what is allowed."""
    if fault["type"] == "extra_forbidden":
        return f"unknown key; allowed: {', '.join(allowed_keys(schema, fault['loc'][:-1]))}"
    if fault["type"] == "missing":
        return "missing key"
    got = "" if isinstance(fault["input"], dict) else f", got {fault['input']!r}"
    return fault["msg"].removeprefix("Value error, ") + got


def allowed_keys(schema: dict, location: tuple) -> list[str]:
    """Keys of the record at `location` in a JSON schema; the tag of a union counts as a step."""
    records = alternatives(schema, schema)
    for step in location:
        inner = []
        for record in records:
            if isinstance(step, int):
                inner.append(record.get("items"))
            elif step in record.get("properties", {}):
                inner.append(record["properties"][step])
            elif step in {value.get("const") for value in record.get("properties", {}).values()}:
                inner.append(record)
            else:
                inner.append(record.get("additionalProperties"))
        records = [option for part in inner if part for option in alternatives(part, schema)]
    return sorted({key for record in records for key in record.get("properties", {})})


def alternatives(part: dict, schema: dict) -> list[dict]:
    """`part` with its references and unions resolved."""
    if "$ref" in part:
        return alternatives(schema["$defs"][part["$ref"].rsplit("/", 1)[-1]], schema)
    options = part.get("anyOf", part.get("oneOf"))
    return [part] if options is None else [one for option in options for one in alternatives(option, schema)]


def load_yaml(path: Path) -> Any:
    """Raises UserError when `path` is missing or is not YAML."""
    try:
        return yaml.load(Path(path).read_text(encoding="utf-8"), Loader=LOADER)
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not valid YAML: {error}") from error
