"""Closed records as JSON files: written atomically, and read only in the format that this version knows."""

import json
import os
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import Field, ValidationError, field_validator

from pipeline.core.errors import UserError, shown
from pipeline.core.files import complete_lines, read_errors
from pipeline.core.json_csv import parse, write_json
from pipeline.core.retries import retry_read
from pipeline.core.schema import Closed, adapter


class Record(Closed):
    """The content of a file, or of one line of a JSON lines file.

    A file without `format` has format 1, as the first versions wrote none.

    Attributes:
        remedy: What to do about a faulty file, for messages.
    """

    format: int = Field(default=1, description="Version of the file's fields")
    remedy: ClassVar[str] = "run the stage that writes it"

    @field_validator("format")
    @classmethod
    def check_format(cls, value: int) -> int:
        """Refuse a format that is not the one that this version reads."""
        known = cls.model_fields["format"].default
        if value != known:
            raise ValueError(f"is of format {value}, this version of Reprise reads {known}")
        return value

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the record in a file.

        Raises:
            UserError: The file is missing or truncated, has another format, or has other fields.
        """
        return read_as(cls, path, cls.remedy)

    @classmethod
    def read_if_there(cls, path: Path) -> Self | None:
        """Return the record in a file; None if it does not exist.

        Raises:
            UserError: The file is truncated, has another format, or has other fields.
        """
        return cls.read(path) if path.exists() else None

    @classmethod
    def read_if_valid(cls, path: Path) -> Self | None:
        """Return the record in a file of state; None if it does not exist, is empty after a crash, or is faulty.

        The folder is listed first, because NFS may hide a fresh file.

        Raises:
            UnreadableError: The system cannot read the file, whatever it holds.
        """

        def read() -> Any:
            try:
                return cls.read(path) if path.name in os.listdir(path.parent) else None
            except (UserError, FileNotFoundError, NotADirectoryError):
                return None

        return retry_read(path, read)

    def write(self, path: Path) -> None:
        """Write the record atomically.

        Raises:
            UserError: The disk is full or the folder cannot be written.
        """
        write_json(path, self.model_dump())

    def line(self) -> str:
        """Return the record as one line of JSON with its end."""
        return json.dumps(self.model_dump(), ensure_ascii=False) + "\n"


def read_as(kind: Any, path: Path, remedy: str = Record.remedy) -> Any:
    """Return the content of `path` as a record of a `kind`, a class or annotated union; `remedy` is for messages.

    Raises:
        UserError: The file is missing or truncated, has another format, or has other fields.
    """
    with read_errors(remedy):
        content = Path(path).read_bytes()
    found = parse_record(kind, content, str(path), remedy)
    try:
        parse(content)  # pydantic accepts repeated keys
    except ValueError as error:
        raise UserError(f"{path}: {error}; remove it and {remedy}") from error
    return found


def read_lines_as(kind: Any, path: Path, remedy: str = Record.remedy) -> list[Any]:
    """Return each line of `path` as a record, except a last one that a crash cut; see `read_as`.

    Raises:
        UserError: The file is missing, or a line is faulty; the message names it.
    """
    with read_errors(remedy):
        lines = enumerate(complete_lines(path), start=1)
    return [parse_record(kind, line, f"{path}: line {number}", remedy) for number, line in lines if line]


def parse_record(kind: Any, content: bytes, where: str, remedy: str = Record.remedy) -> Any:
    """Return the UTF-8 JSON `content` at `where` as a record; see `read_as`.

    Raises:
        UserError: It is not one.
    """
    try:
        return adapter(kind).validate_json(content)
    except ValidationError as error:
        raise UserError(f"{where}: {explain_error(error)}; remove it and {remedy}") from error


def explain_error(error: ValidationError) -> str:
    """Describe the first fault of a file; a wrong format takes precedence."""
    faults = error.errors(include_url=False)
    fault = next((fault for fault in faults if fault["loc"][-1:] == ("format",)), faults[0])
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
    return f"{field or 'file'}: {fault['msg'].removeprefix('Value error, ')}, got {shown(fault['input'])}"
