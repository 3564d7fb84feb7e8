"""Finding the names in a record: every text in it whose type says that it refers to something."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from pipeline.analysis.names import Names


@dataclass(frozen=True)
class Named:
    """One name in a record."""

    kind: Names
    name: str
    place: tuple[str | int, ...]
    """Keys that lead to it."""
    holder: BaseModel
    """The record whose field it is."""

    @property
    def key(self) -> str:
        return ".".join(map(str, self.place))


@dataclass(frozen=True)
class Members:
    """What a type says of the texts, sequences and mappings among its values."""

    kind: Names | None = None
    """What a text names."""
    key: Any = Any
    item: Any = Any


def names_in(record: BaseModel, place: tuple[str | int, ...] = ()) -> Iterator[Named]:
    """Names in a record and in the records within it. place: keys that lead to the record."""
    for key, field in type(record).model_fields.items():
        types = members(Annotated[field.annotation, *field.metadata, None])
        yield from names_of(types, getattr(record, key), (*place, key), record)


def names_of(types: Members, value: Any, place: tuple[str | int, ...], holder: BaseModel) -> Iterator[Named]:
    if isinstance(value, BaseModel):
        yield from names_in(value, place)
    elif isinstance(value, str):
        if types.kind:
            yield Named(types.kind, value, place, holder)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from names_of(members(types.item), item, (*place, number), holder)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from names_of(members(types.key), key, (*place, key), holder)
            yield from names_of(members(types.item), item, (*place, key), holder)


@cache
def members(annotation: Any) -> Members:
    """A type with its unions and annotations taken apart."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner = members(arguments[0])
        kind = next((mark for mark in arguments[1:] if isinstance(mark, Names)), inner.kind)
        return Members(kind, inner.key, inner.item)
    if origin in (Union, UnionType):
        options = [members(argument) for argument in arguments]
        found = {name: [getattr(one, name) for one in options] for name in ("key", "item")}
        kind = next((one.kind for one in options if one.kind), None)
        return Members(kind, *(next((one for one in found[name] if one is not Any), Any) for name in ("key", "item")))
    if origin is dict:
        return Members(None, *arguments)
    return Members(None, Any, arguments[0]) if origin in (list, tuple) else Members()
