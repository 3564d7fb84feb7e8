"""Names in a record: every text whose type marks it as a reference."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from pipeline.analysis.names import Names


@dataclass(frozen=True)
class Named:
    """One name in a record.

    Attributes:
        kind: Kind of thing that the name refers to.
        name: The name.
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
        record: Record to search.
        place: Keys that lead to it.
    """
    for key, field in type(record).model_fields.items():
        types = _members(Annotated[field.annotation, *field.metadata, None])
        yield from _names_of(types, getattr(record, key), (*place, key), record)


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
        found = {name: [getattr(one, name) for one in options] for name in ("key", "item")}
        kind = next((one.kind for one in options if one.kind), None)
        return Members(kind, *(next((one for one in found[name] if one is not Any), Any) for name in ("key", "item")))
    if origin is dict:
        return Members(None, *arguments)
    return Members(None, Any, arguments[0]) if origin in (list, tuple) else Members()
