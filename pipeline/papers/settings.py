"""Settings of `config.yaml`, also given as KEY=VALUE on a command line."""

import os
import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field, field_validator

from pipeline.core.errors import UserError
from pipeline.core.schema import Closed, Seed
from pipeline.core.yaml_file import parse_yaml

MOST_SEEDS = 1000


class Config(Closed):
    """Settings that a user changes: `config.yaml`."""

    paper: str = Field(description="Paper whose tables are shown as `results/table<N>.csv`")
    scale: str = Field(description="Name of a file in workflow/scales")
    seeds: (
        Annotated[list[Seed], Field(min_length=1, max_length=MOST_SEEDS)] | Annotated[int, Field(ge=1, le=MOST_SEEDS)]
    ) = Field(description="Seeds of every run: a list, or how many (1, 2, …)")
    work: str = Field(min_length=1, description="Folder of downloads, corpora and runs; can be on a scratch disk")
    mirror: str | None = Field(default=None, description="Folder or URL tried before the public addresses")
    licensed: dict[str, Annotated[str, Field(min_length=1)]] = Field(
        default={}, description="Folders of licensed packages by name, e.g. LDC99T42; without them stand-ins are used"
    )
    tensorboard: bool = Field(default=False, description="Also write event files for TensorBoard")
    cuda_graphs: bool = Field(
        default=True, description="Replay steps on a GPU as CUDA graphs; false: run all steps eagerly"
    )

    @field_validator("seeds", "mirror", mode="before")
    @classmethod
    def parse_snakemake_text(cls, value: Any) -> Any:
        """Convert texts: `--config mirror=null seeds=[1,7]` reaches a workflow as "null" and ["1", "7"]."""
        if isinstance(value, list):
            return [int(part) if isinstance(part, str) and part.isdecimal() else part for part in value]
        return None if value == "null" else value

    @field_validator("tensorboard", "cuda_graphs", mode="before")
    @classmethod
    def parse_snakemake_booleans(cls, value: Any) -> Any:
        """Convert the text of `--config tensorboard=true` to a boolean."""
        return {"true": True, "false": False}.get(value.lower(), value) if isinstance(value, str) else value

    @field_validator("work", "mirror", "licensed")
    @classmethod
    def expand_folders(cls, value: Any) -> Any:
        """Return the value with `~` and variables such as `$SCRATCH` expanded, as a shell does.

        Raises:
            ValueError: A user or variable is unknown, or the folder would be read as an option.
        """
        if isinstance(value, dict):
            return {key: cls.expand_folders(inner) for key, inner in value.items()}
        filled = value and os.path.expandvars(os.path.expanduser(value))
        if filled and filled.startswith("-"):
            raise ValueError("starts with `-` and would be read as an option; write ./ before it")
        if filled and (filled.startswith("~") or "$" in filled):
            raise ValueError("has an unknown user or an unset variable")
        return filled

    @field_validator("seeds")
    @classmethod
    def check_seeds(cls, seeds: list[int] | int) -> list[int] | int:
        """Return the seeds if none is listed twice.

        Raises:
            ValueError: A seed is listed twice.
        """
        if isinstance(seeds, list) and len(set(seeds)) < len(seeds):
            raise ValueError("a seed is listed twice; remove one")
        return seeds

    @field_validator("mirror")
    @classmethod
    def check_mirror(cls, mirror: str | None) -> str | None:
        """Return the mirror if it is a folder or a URL.

        Raises:
            ValueError: The mirror is neither.
        """
        if mirror is not None and not re.match(r"https?://.", mirror) and not os.path.isdir(mirror):
            raise ValueError("must be an existing folder or a URL (https://… or http://…); null = none")
        return mirror

    @property
    def seed_list(self) -> list[int]:
        """Return the seeds as a list."""
        return self.seeds if isinstance(self.seeds, list) else list(range(1, self.seeds + 1))


def parse_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """Return the values of `KEY=VALUE` texts by key, as in config.yaml.

    Raises:
        UserError: A text has no `=`, or its value is not valid YAML.
    """
    for pair in pairs:
        if "=" not in pair:
            raise UserError(f"--set {pair}: write KEY=VALUE, e.g. --set scale=small")
    return {key: parse_yaml(value, f"--set {key}") for key, value in (pair.split("=", 1) for pair in pairs)}
