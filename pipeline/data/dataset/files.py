"""Files to fetch: `workflow/files/<origin>.yaml` describes each once, and the splits of datasets name it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from pipeline.core.errors import UserError, one_line, shown
from pipeline.core.schema import Bytes, Closed, load_yaml, nearest, validate


def plain_name(name: str) -> str:
    """Reject a name that is not a plain file name.

    Returns:
        The name unchanged.

    Raises:
        ValueError: It holds a folder, or is empty.
    """
    if name != Path(name).name or name in ("", ".."):
        raise ValueError("must be a plain file name")
    return name


FileName = Annotated[str, AfterValidator(plain_name)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Md5 = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]


class Documents(Closed):
    """Files of one folder on the web, read in order and verified by the digest of the split."""

    folder: str = Field(pattern="/$", description="Address of the folder")
    names: list[FileName] = Field(min_length=1, description="Files in the folder, in reading order")


class Source(Closed):
    """One file to fetch."""

    urls: list[str] = Field(default=[], description="Addresses, tried in turn; none = only a mirror has it")
    path: str | None = Field(default=None, description="Path of the user's own file, read in place")
    mirror: str | None = Field(default=None, description="Path below the mirror; null = the source's name")
    sha256: Sha256 | None = Field(default=None, description="SHA-256 of the file")
    md5: Md5 | None = Field(default=None, description="MD5 of the file, if no SHA-256 is published")
    bytes: Bytes | None = Field(default=None, description="Size of the file, in bytes, if known")
    documents: Documents | None = Field(
        default=None, description="Web documents that the file of trees was joined from"
    )
    licence: str | None = Field(default=None, description="Terms of use; null = those of its origin, or of the dataset")
    redistributable: bool = Field(default=False, description="The licence lets anyone redistribute the file")

    @model_validator(mode="after")
    def has_one_checksum(self):
        """Check that there is exactly one checksum.

        Returns:
            The record.

        Raises:
            ValueError: There is none, or both.
        """
        if (self.sha256 is None) == (self.md5 is None):
            raise ValueError("needs exactly one of sha256 and md5")
        return self

    @property
    def known_hash(self) -> str:
        """Checksum with its algorithm, as pooch writes it."""
        return f"sha256:{self.sha256}" if self.sha256 else f"md5:{self.md5}"


Sources = dict[FileName, Source]


class Origin(Closed):
    """Files of one origin, under one licence: `workflow/files/<origin>.yaml`."""

    licence: str = Field(description="Terms of use of the files, with their name")
    redistributable: bool = Field(
        description="The licence lets anyone redistribute the files for any purpose; false if it does not say"
    )
    files: Sources = Field(min_length=1, description="The files, by name")


def load_files(folder: Path) -> dict[str, Source]:
    """Load every file that datasets can name, with its licence.

    Returns:
        The files by name.

    Raises:
        UserError: A key is unknown, a value is bad, or two origins have files of one name.
    """
    files: dict[str, Source] = {}
    for path in sorted(folder.glob("*.yaml")):
        origin: Origin = validate(Origin, load_yaml(path), str(path))
        terms = {"licence": origin.licence, "redistributable": origin.redistributable}
        if twice := sorted(set(origin.files) & set(files)):
            raise UserError(f"{path}: files: {shown(twice[0])}: described in two files of {folder}; remove one")
        files |= {name: source.model_copy(update=terms) for name, source in origin.files.items()}
    return files


def complete(record: Any, files: dict[str, Source], where: str) -> Any:
    """Add to a dataset's record the files that its splits name but it does not describe, with their licences.

    Args:
        record: Content of a dataset file; need not be valid yet.
        files: Files described in workflow/files, by name.
        where: Dataset file, for the message.

    Returns:
        The record with the sources added; unchanged if it is malformed.

    Raises:
        UserError: A file is described nowhere; the message has the nearest spelling.
    """
    holder = record.get("text", record) if isinstance(record, dict) else None
    if not isinstance(holder, dict) or not isinstance(own := holder.get("sources", {}), dict):
        return record  # `validate` reports the error
    needed = [name for name in dict.fromkeys(named(holder.get("splits"))) if name not in own]
    for name in needed:
        if name not in files:
            fault = f"splits name {one_line(name, 80)}, but it is neither under sources nor in workflow/files"
            raise UserError(f"{where}: {fault}{nearest(name, files)}")
    if not needed:
        return record
    sources = {"sources": own | {name: files[name] for name in needed}}
    licences = dict.fromkeys(files[name].licence for name in needed)
    terms = {"licence": "; ".join(filter(None, licences))}
    return terms | record | ({"text": holder | sources} if "text" in record else sources)


def named(splits: Any) -> Iterator[str]:
    """Yield every file name in the splits of a record."""
    if isinstance(splits, dict):
        yield from (splits[key] for key in ("source", "table") if isinstance(splits.get(key), str))
    values = splits.values() if isinstance(splits, dict) else splits if isinstance(splits, list) else ()
    for part in values:
        yield from named(part)
