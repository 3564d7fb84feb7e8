"""Whether the rules of a scale fit the settings that they are for."""

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from pipeline.config import DecodingConfig, ModelConfig, TrainingConfig
from pipeline.core.schema import shown, unknown
from pipeline.models.fusion.settings import FusionConfig
from pipeline.papers.scale import Rule, Rules

RECORDS: dict[str, tuple[type[BaseModel], ...]] = {
    "model": get_args(get_args(ModelConfig)[0]),
    "fusion": (FusionConfig,),
    "training": (TrainingConfig,),
    "decoding": (DecodingConfig,),
}
"""What a section may be: of a model, the settings of any architecture."""
FIXED = {"architecture", "kind"}
"""Keys that say which record it is."""
NUMBERS = (1, 2, 64, 0.5)
"""One of these is allowed for each setting that is a number."""


def rule_faults(rules: Rules, where: str) -> Iterator[str]:
    """A line for each rule for a key that no section has, or that gives a setting a value of another type."""
    for section, records in RECORDS.items():
        keys = {key for record in records for key in record.model_fields} - FIXED
        for key, rule in getattr(rules, section).items():
            place = f"{where}{section}.{key}"
            if fault := unknown(key, keys, place):
                yield fault
            else:
                settings = [setting(record, key) for record in records if key in record.model_fields]
                yield from value_faults(rule, settings, place)


def value_faults(rule: Rule, settings: list[TypeAdapter], place: str) -> Iterator[str]:
    if rule.set is not None:
        if all(faults := [fault_of(one, rule.set) for one in settings]):
            yield f"{place}.set: {' or '.join(dict.fromkeys(faults))}, got {shown(rule.set)}"
    elif all(fault_of(one, number) for one in settings for number in NUMBERS):
        yield f"{place}: no number, so it can't be {'divided' if rule.divide else 'multiplied'}; use set"


@cache
def setting(record: type[BaseModel], key: str) -> TypeAdapter:
    """What one setting of a record may be."""
    field = record.model_fields[key]
    kind: Any = Annotated[field.annotation, field]
    return TypeAdapter(kind, config=ConfigDict(strict=True))


def fault_of(allowed: TypeAdapter, value: Any) -> str:
    """What a setting says of a value that is not allowed; empty where it is."""
    try:
        allowed.validate_python(value)
    except ValidationError as error:
        return error.errors()[0]["msg"]
    return ""
