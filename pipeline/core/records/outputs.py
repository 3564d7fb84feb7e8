"""The manifest of the outputs or the scores of one decoding."""

from pydantic import Field

from pipeline.core.records.record import Record
from pipeline.core.schema import Closed


class Output(Closed):
    """One output: how it was made, or why it was not."""

    key: str = Field(description="Digest of its inputs and settings")
    files: dict[str, str] = Field(default={}, description="SHA-256 of each of its files, by path in the run's folder")
    error: str | None = Field(default=None, description="Why it could not be made")


class Manifest(Record):
    """`outputs.json` or `scores.json`."""

    entries: dict[str, Output] = Field(description="By the path, in the run's folder, of the file that readers open")
