"""Settings of `config.yaml`, also given as KEY=VALUE on a command line."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator

from pipeline.core.errors import UserError, shown
from pipeline.core.schema import Closed, Seed
from pipeline.core.yaml_file import parse_yaml

MOST_SEEDS = 1000
LONGEST_NAME = 255  # bytes, of file systems
LONGEST_WORK = 3500  # bytes; Linux allows paths of 4096, and those of runs are longer than that of the work folder
OWN_FOLDERS = (
    ".git",
    "bench",
    "config",
    "docs",
    "pipeline",
    "profiles",
    "qa",
    "reprise",
    "results",
    "slurm",
    "tests",
    "workflow",
)


class Config(Closed):
    """Settings that a user changes: `config.yaml`."""

    paper: str = Field(description="Paper whose tables are shown as `results/table<N>.csv`")
    scale: str = Field(description="Name of a file in workflow/scales")
    seeds: (
        Annotated[list[Seed], Field(min_length=1, max_length=MOST_SEEDS)] | Annotated[int, Field(ge=1, le=MOST_SEEDS)]
    ) = Field(description="Seeds of every system: a list, or how many (1, 2, …); a scale may add more to some")
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
        filled = expanded(value)
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


def expanded(value: Any) -> Any:
    """Return a setting with `~` and known variables in its texts expanded, as a shell does."""
    if isinstance(value, dict):
        return {key: expanded(inner) for key, inner in value.items()}
    return os.path.expandvars(os.path.expanduser(value)) if isinstance(value, str) else value


def parse_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """Return the values of `KEY=VALUE` texts by key, as in config.yaml.

    Raises:
        UserError: A text has no `=`, or its value is not valid YAML.
    """
    for pair in pairs:
        if "=" not in pair:
            raise UserError(f"--set {pair}: write KEY=VALUE, e.g. --set scale=small")
    return {key: parse_yaml(value, f"--set {key}") for key, value in (pair.split("=", 1) for pair in pairs)}


def require_work(config: Config, root: Path) -> None:
    """Check that the work folder can be created; relative folders start at the working directory.

    Raises:
        UserError: It is an address, lies in one of the project's own folders, is too long, or cannot be part of a
            rule's paths. Or a file is in the way, or a link to nowhere.
    """
    work = Path(config.work)
    if re.match(r"[A-Za-z][\w+.-]*://", config.work):
        raise UserError(f"work: {shown(config.work)}: is an address; name a folder")
    if len(os.fsencode(work.absolute())) > LONGEST_WORK:
        raise UserError(f"work: the path is longer than {LONGEST_WORK} bytes; choose a shorter one")
    if any(len(os.fsencode(part)) > LONGEST_NAME for part in work.parts):
        raise UserError(
            f"work: {shown(str(work))}: the name of a folder is longer than {LONGEST_NAME} bytes; choose a shorter one"
        )
    if set("{}\n") & set(str(work)):
        raise UserError(
            f"work: {shown(str(work))}: no rule can have a brace or a line break in a path; choose another name"
        )
    if in_its_way := [path for path in (work, *work.parents) if path.exists() and not path.is_dir()]:
        raise UserError(f"work: {in_its_way[-1]} is a file; name a folder, which need not exist yet (got {work})")
    if links := [path for path in (work, *work.parents) if path.is_symlink() and not path.exists()]:
        raise UserError(
            f"work: {links[-1]} is a link to {os.readlink(links[-1])}, which is not there; create that folder, or "
            "mount its disk"
        )
    for own in OWN_FOLDERS:
        if work.resolve().is_relative_to((root / own).resolve()):
            raise UserError(f"work: {shown(str(work))}: is in the project's own folder {own}; choose another one")
