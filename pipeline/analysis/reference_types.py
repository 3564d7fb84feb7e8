"""Types that mark texts in settings files as references, and the search for such texts in a record.

`papers/references.py` looks up every reference when a project is loaded. A record whose field has one of these types
needs no further line to have it checked.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, Field

from pipeline.core.schema import NAME


class Names(Enum):
    """Kinds of things that a text refers to."""

    SYSTEM = "`name`, or `paper/name` of another paper"
    SYSTEMS = "a system, or `*` for all systems"
    TRAINED = "`system@dataset` or `paper/system@dataset`"
    DATASET = "a dataset as the papers name it, before the scale replaces it"
    DECODING = "a named decoding of the paper that owns the system"
    METRIC = "a metric of a score file"
    SCORE = "a score of the same paper's claims"
    SCALE = "a file of workflow/scales"
    LAYER = "a layer type that is timed"


SystemName = Annotated[str, Names.SYSTEM, Field(description=f"A system: {Names.SYSTEM.value}")]
SystemPattern = Annotated[str, Names.SYSTEMS]
TrainedName = Annotated[str, Names.TRAINED]
DatasetName = Annotated[str, Names.DATASET, Field(description=Names.DATASET.value.capitalize())]
DecodingName = Annotated[str, Names.DECODING]
MetricName = Annotated[str, Names.METRIC]
ScoreName = Annotated[str, Names.SCORE]
ScaleName = Annotated[str, Names.SCALE]
LayerName = Annotated[str, Names.LAYER]
TestName = Annotated[str, Field(pattern=r"^tests/[\w/]+\.py::test_\w+$")]
NewName = Annotated[str, Field(pattern=NAME, max_length=60)]
"""Name that defines something others refer to; it becomes a part of paths."""
ScoredSplit = Literal["dev", "test", "test2", "test3", "test4", "test5"]


@dataclass(frozen=True)
class Named:
    """One name in a record.

    Attributes:
        kind: Kind of thing that the name refers to.
        place: Keys that lead to it.
        holder: Innermost record that contains it.
    """

    kind: Names
    name: str
    place: tuple[str | int, ...]
    holder: BaseModel

    @property
    def key(self) -> str:
        """Return the dotted key of the name."""
        return ".".join(map(str, self.place))


@dataclass(frozen=True)
class Members:
    """Parts of a type that matter for names.

    Attributes:
        kind: Kind of thing that a text of this type names.
        key: Type of a mapping's keys.
        item: Type of the items of a sequence or mapping.
    """

    kind: Names | None = None
    key: Any = Any
    item: Any = Any


def names_in(record: BaseModel, place: tuple[str | int, ...] = ()) -> Iterator[Named]:
    """Yield the names in a record and its nested records.

    Args:
        record: Record to search, with its nested records.
        place: Keys that lead to it from the outermost record.
    """
    for key, types in _fields(type(record)).items():
        yield from _names_of(types, getattr(record, key), (*place, key), record)


@cache
def _fields(kind: type[BaseModel]) -> dict[str, Members]:
    """Return what matters for names of each field of a class of records."""
    fields = kind.model_fields.items()
    return {key: _members(Annotated[field.annotation, *field.metadata, None]) for key, field in fields}


def _names_of(types: Members, value: Any, place: tuple[str | int, ...], holder: BaseModel) -> Iterator[Named]:
    """Yield the names in a value of a known type."""
    if isinstance(value, BaseModel):
        yield from names_in(value, place)
    elif isinstance(value, str):
        if types.kind:
            yield Named(types.kind, value, place, holder)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _names_of(_members(types.item), item, (*place, number), holder)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _names_of(_members(types.key), key, (*place, key), holder)
            yield from _names_of(_members(types.item), item, (*place, key), holder)


@cache
def _members(annotation: Any) -> Members:
    """Resolve unions and annotations of a type."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner = _members(arguments[0])
        kind = next((mark for mark in arguments[1:] if isinstance(mark, Names)), inner.kind)
        return Members(kind, inner.key, inner.item)
    if origin in (Union, UnionType):
        options = [_members(argument) for argument in arguments]
        found = {name: [getattr(option, name) for option in options] for name in ("key", "item")}
        kind = next((option.kind for option in options if option.kind), None)
        return Members(
            kind, *(next((choice for choice in found[name] if choice is not Any), Any) for name in ("key", "item"))
        )
    if origin is dict:
        return Members(None, *arguments)
    return Members(None, Any, arguments[0]) if origin in (list, tuple) else Members()
