"""A JSON file as a closed record: written whole, and read only if it is of the format that this version knows."""

import json
import os
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from pydantic import Field, ValidationError, field_validator

from pipeline.core.errors import UserError
from pipeline.core.files import reading, whole_lines
from pipeline.core.json_file import parse, write_json
from pipeline.core.schema import Closed, adapter

Note = TypeVar("Note", bound="Record")


class Record(Closed):
    """The content of one file, or of one line of a file of JSON lines.

    A file without `format` is of format 1: the first versions wrote none.
    """

    format: int = Field(default=1, description="Version of the file's fields")
    remedy: ClassVar[str] = "run the stage that writes it"

    @field_validator("format")
    @classmethod
    def check_format(cls, value: int) -> int:
        known = cls.model_fields["format"].default
        if value != known:
            raise ValueError(f"is of format {value}, this version of Reprise reads {known}")
        return value

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises UserError when the file is missing, torn, of another format, or has other fields."""
        return read_as(cls, path, cls.remedy)

    @classmethod
    def read_if_there(cls, path: Path) -> Self | None:
        """None when there is no such file. Raises UserError as `read` does."""
        return cls.read(path) if path.exists() else None

    def write(self, path: Path) -> None:
        """Whole or not at all. Raises UserError when the disk is full."""
        write_json(path, self.model_dump())

    def line(self) -> str:
        """On one line, which it ends."""
        return json.dumps(self.model_dump(), ensure_ascii=False) + "\n"


def read_as(kind: Any, path: Path, remedy: str = Record.remedy) -> Any:
    """The file as a `kind`, a record class or an annotated union of them. Raises UserError as `Record.read` does."""
    with reading(remedy):
        content = Path(path).read_bytes()
    found = parsed(kind, content, str(path), remedy)
    try:
        parse(content)  # pydantic takes the last of several values
    except ValueError as error:
        raise UserError(f"{path}: {error}; remove it and {remedy}") from error
    return found


def read_lines_as(kind: Any, path: Path, remedy: str = Record.remedy) -> list[Any]:
    """Each line of the file as a `kind`, but a last one that a crash cut. Raises UserError as `Record.read` does,
    naming the line.
    """
    with reading(remedy):
        lines = enumerate(whole_lines(path), start=1)
    return [parsed(kind, line, f"{path}: line {number}", remedy) for number, line in lines if line]


def read_note(kind: type[Note], path: Path) -> Note | None:
    """`path` as a `kind`, or None while it is absent; lists the folder first, since NFS may hide a fresh file.

    One that was removed meanwhile, was left empty by a crash or is of another version is as good as absent.
    """
    if not path.parent.is_dir() or path.name not in os.listdir(path.parent):
        return None
    try:
        return kind.read(path)
    except UserError:
        return None


def parsed(kind: Any, content: bytes, where: str, remedy: str = Record.remedy) -> Any:
    """JSON as a `kind`. Raises UserError when it is not one."""
    try:
        return adapter(kind).validate_json(content)
    except ValidationError as error:
        raise UserError(f"{where}: {explained(error)}; remove it and {remedy}") from error


def explained(error: ValidationError) -> str:
    """What is wrong with a file, in words; of several faults the first, but the version before all."""
    faults = error.errors(include_url=False)
    fault = next((one for one in faults if one["loc"][-1:] == ("format",)), faults[0])
    field = ".".join(map(str, fault["loc"]))
    match fault["type"]:
        case "json_invalid":
            return f"not valid JSON ({fault['ctx']['error']})"
        case "missing":
            return f"has no `{field}`"
        case "extra_forbidden":
            return f"has an unknown field `{field}`"
        case "union_tag_invalid":
            return f"is of the unknown kind {fault['ctx']['tag']!r}; known are {fault['ctx']['expected_tags']}"
        case "value_error" if fault["loc"][-1:] == ("format",):
            return str(fault["ctx"]["error"])
    return f"{field or 'file'}: {fault['msg'].removeprefix('Value error, ')}, got {fault['input']!r}"
