"""Strict and safe YAML: no repeated key, no tags, bounded size, depth and number of values.

Values are built from parser events, so a file can exhaust neither the stack nor, by aliases of aliases, the memory.
Every fault is a UserError of one line.
ruamel.yaml is no alternative. Its C parser rejects URLs in flow lists and crashes on deep nesting. Its Python parser is
20 times slower (0.9 s for the files of a project). Neither bounds depth or size.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from pipeline.core.errors import UserError, one_line, shown

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same language, parsed in C if PyYAML has it
MAX_BYTES, MAX_DEPTH, MAX_VALUES = 1_000_000, 50, 100_000
"""The largest file of this project has 20 kB, 10 levels and 1,500 values."""
LARGEST = 2**63
TEXT = "tag:yaml.org,2002:str"
PLAIN = re.compile(r"[A-Za-z_/.][\w/.:@+%~=-]*", re.ASCII)
"""Texts without YAML syntax."""
OCTAL = re.compile("[-+]?0[0-7_]+")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters other than line breaks and tabs."""


def load_yaml(path: Path) -> Any:
    """Return the mappings, sequences and scalars of a YAML file.

    Raises:
        UserError: The file is missing, is not UTF-8 or not YAML, or has a key twice.
    """
    try:
        with Path(path).open("rb") as handle:
            content = handle.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise UserError(f"{path}: larger than {MAX_BYTES} bytes, which no settings need")
        return parse_yaml(content.decode("utf-8"), str(path))
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except OSError as error:
        raise UserError(f"{path}: can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path}: line {line}: byte {content[error.start]:#04x} is not UTF-8; save the file as UTF-8"
        ) from error


def parse_yaml(text: str, where: str) -> Any:
    """Return the one document of the YAML `text` at `where`; None if it is empty.

    Raises:
        UserError: It is not YAML, or has a key twice.
    """
    try:
        loader = LOADER(text)
        try:
            return YamlReader(loader, where).document()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        fault = f"{where}: {line}not valid YAML: {error.problem or error.context}"
        raise UserError(f"{fault}; {remedy(text, mark.line if mark else 0)}") from error
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise UserError(f"{where}: not valid YAML: {one_line(' '.join(str(error).split()))}") from error


def remedy(text: str, line: int) -> str:
    """Return what to correct in a text that is not YAML.

    Args:
        text: The text.
        line: Number of the line with the fault, from 0.
    """
    if "\t" in "".join(text.splitlines()[line : line + 1]):
        return "indent with spaces, not tabs"
    return "check the indentation, colons and quotes there and in the lines above"


def yaml_text(text: str) -> str:
    """Return a text as YAML that reads back as this text, in quotes if it would be a number, `no`, or syntax."""
    try:
        is_plain = PLAIN.fullmatch(text) and parse_yaml(f"{{key: {text}}}", "") == {"key": text} == {
            "key": parse_yaml(text, "")
        }
    except UserError:
        is_plain = False
    return text if is_plain else json.dumps(text, ensure_ascii=False)


@dataclass(slots=True)
class Collection:
    """A mapping or a sequence that is being read.

    Attributes:
        value: A dict or a list.
        anchor: Its name for aliases.
        key: Key of a mapping whose value comes next.
        lines: Line of each key.
        size: Number of values in it, including itself and expanded aliases.
    """

    value: Any
    anchor: str | None = None
    key: str | None = None
    lines: dict[str, int] = field(default_factory=dict)
    size: int = 1


class YamlReader:
    """Reader of one document, event by event."""

    def __init__(self, loader: Any, where: str):
        self.loader = loader
        self.where = where
        self.event: Any = None
        self.open = [Collection([])]
        self.anchored: dict[str, tuple[Any, int]] = {}
        """Values that aliases name, with their size."""

    def document(self) -> Any:
        """Return the document; None if the file is empty.

        Raises:
            UserError: Its content is refused.
            YAMLError: It is not YAML.
        """
        documents = 0
        while self.loader.check_event():
            self.event = self.loader.get_event()
            kind = type(self.event)
            if kind is yaml.ScalarEvent:
                self.add(self.scalar(), 1, self.event.anchor)
            elif kind is yaml.MappingStartEvent:
                self.begin({})
            elif kind is yaml.SequenceStartEvent:
                self.begin([])
            elif kind in (yaml.MappingEndEvent, yaml.SequenceEndEvent):
                done = self.open.pop()
                self.add(done.value, done.size, done.anchor)
            elif kind is yaml.AliasEvent:
                self.alias()
            elif kind is yaml.DocumentStartEvent and (documents := documents + 1) > 1:
                raise self.fault("a second document; a file holds one")
        return self.open[0].value[0] if self.open[0].value else None

    def begin(self, value: dict | list) -> None:
        """Open a mapping or sequence.

        Raises:
            UserError: It has a tag, nests too deeply, or is used as a key.
        """
        outer = self.open[-1]
        self.refuse_tag()
        if type(outer.value) is dict and outer.key is None:
            raise self.fault("a key must be a text")
        if len(self.open) > MAX_DEPTH:
            raise self.fault(f"more than {MAX_DEPTH} levels, which no settings need")
        self.open.append(Collection(value, self.event.anchor))

    def add(self, value: Any, size: int, anchor: str | None) -> None:
        """Put a complete `value` of `size` values, aliases expanded, and perhaps an `anchor`, into the open collection.

        Raises:
            UserError: The file has too many values, or the value is a faulty key.
        """
        outer = self.open[-1]
        outer.size += size
        if outer.size > MAX_VALUES:
            raise self.fault(f"more than {MAX_VALUES} values, aliases written out, which no settings need")
        if type(outer.value) is list:
            outer.value.append(value)
        elif outer.key is None:
            outer.key = self.new_key(outer.lines, value)
        else:
            outer.value[outer.key] = value
            outer.key = None
        if anchor:
            self.anchored[anchor] = value, size

    def alias(self) -> None:
        """Add the value that an alias names.

        Raises:
            UserError: The anchor is not complete yet.
        """
        name = self.event.anchor
        if name not in self.anchored:
            raise self.fault(f"no anchor &{name} is complete before this alias")
        self.add(*self.anchored[name], anchor=None)

    def new_key(self, lines: dict[str, int], key: Any) -> str:
        """Return a valid `key` of a mapping, and note its line among the `lines` of the keys so far.

        Raises:
            UserError: The key is not a printable text, merges another mapping, or is repeated.
        """
        if type(key) is not str:
            raise self.fault(f"the key {shown(key)} is not a text; put it in quotes")
        if not key.isprintable():
            raise self.fault(f"the key {shown(key)} has an unprintable character")
        if key == "<<" and not self.event.style:
            raise self.fault("merge keys (<<) are not supported; write out the values")
        if key in lines:
            raise self.fault(f"the key {shown(key)} is already on line {lines[key]}; remove one of them")
        lines[key] = self.event.start_mark.line + 1
        return key

    def scalar(self) -> Any:
        """Return the current event as a text, number, date, truth value or null.

        Raises:
            UserError: It has a tag or a control character, or is no valid number or date.
        """
        self.refuse_tag()
        text = self.event.value
        if not text.isprintable() and CONTROL.search(text):
            raise self.fault(f"{shown(text)} has a control character")
        if not self.event.implicit[0] or text[:1] not in self.loader.yaml_implicit_resolvers:
            return text
        tag = self.loader.resolve(yaml.ScalarNode, text, (True, False))
        if tag == TEXT or tag not in self.loader.yaml_constructors:
            return text  # `<<` and `=` are a text here
        try:
            value = self.loader.construct_object(yaml.ScalarNode(tag, text))
        except (ValueError, OverflowError) as error:
            raise self.fault(f"{shown(text)} is not a valid {tag.rpartition(':')[2]}") from error
        if isinstance(value, int | float) and not abs(value) <= LARGEST:
            raise self.fault(f"{shown(text)} is not a number below {LARGEST:.0e}")
        base = 60 if ":" in text else 8 if OCTAL.fullmatch(text) else 10
        if isinstance(value, int | float) and base != 10:
            raise self.fault(
                f"{shown(text)} would be {value:g}, a number in base {base}; write a plain number or quotes"
            )
        return value

    def refuse_tag(self) -> None:
        """Refuse an explicit tag.

        Raises:
            UserError: There is one.
        """
        if self.event.tag is not None:
            raise self.fault(f"the tag {shown(self.event.tag)} is not understood; write the plain value")

    def fault(self, what: str) -> UserError:
        """Return an error that names file and line."""
        return UserError(f"{self.where}: line {self.event.start_mark.line + 1}: {what}")
