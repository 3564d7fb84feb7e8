"""What a user changes: `config.yaml`, and keys of it on a command line."""

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
    """`config.yaml`: what a user changes."""

    paper: str = Field(description="Paper whose tables `results/table<N>.csv` are")
    scale: str = Field(description="A file of workflow/scales")
    seeds: (
        Annotated[list[Seed], Field(min_length=1, max_length=MOST_SEEDS)] | Annotated[int, Field(ge=1, le=MOST_SEEDS)]
    ) = Field(description="Seeds of every run: a list, or how many (1, 2, …)")
    work: str = Field(min_length=1, description="Folder of downloads, corpora and runs; may be on a scratch disk")
    mirror: str | None = Field(default=None, description="Folder or URL tried before the public addresses")
    licensed: dict[str, Annotated[str, Field(min_length=1)]] = Field(
        default={}, description="Folders of licensed packages by name, e.g. LDC99T42; without them stand-ins are used"
    )
    tensorboard: bool = Field(default=False, description="Whether trainings write event files for TensorBoard, too")
    cuda_graphs: bool = Field(default=True, description="Whether trainings on a GPU replay their steps as CUDA graphs")

    @field_validator("seeds", "mirror", mode="before")
    @classmethod
    def read_what_snakemake_hands_over_as_text(cls, value: Any) -> Any:
        """`--config mirror=null seeds=[1,7]` reaches a workflow as "null" and ["1", "7"]."""
        if isinstance(value, list):
            return [int(one) if isinstance(one, str) and one.isdecimal() else one for one in value]
        return None if value == "null" else value

    @field_validator("work", "mirror", "licensed")
    @classmethod
    def home_and_variables_are_filled_in(cls, value: Any) -> Any:
        """`~` and `$SCRATCH` mean what a shell means by them."""
        if isinstance(value, dict):
            return {key: cls.home_and_variables_are_filled_in(one) for key, one in value.items()}
        filled = value and os.path.expandvars(os.path.expanduser(value))
        if filled and filled.startswith("-"):
            raise ValueError("begins with `-`, as options of commands do; write ./ before it")
        if filled and (filled.startswith("~") or "$" in filled):
            raise ValueError("holds a user or a variable that is not there")
        return filled

    @field_validator("seeds")
    @classmethod
    def each_seed_stands_once(cls, seeds: list[int] | int) -> list[int] | int:
        if isinstance(seeds, list) and len(set(seeds)) < len(seeds):
            raise ValueError("each seed may stand there once")
        return seeds

    @field_validator("mirror")
    @classmethod
    def mirror_is_a_folder_or_an_address(cls, mirror: str | None) -> str | None:
        if mirror is not None and not re.match(r"https?://.", mirror) and not os.path.isdir(mirror):
            raise ValueError("neither a folder nor a URL (https://… or http://…); null = none")
        return mirror

    @property
    def seed_list(self) -> list[int]:
        return self.seeds if isinstance(self.seeds, list) else list(range(1, self.seeds + 1))


def parse_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """`KEY=VALUE`, with values as in config.yaml. Raises UserError when one has no `=`."""
    for pair in pairs:
        if "=" not in pair:
            raise UserError(f"--set {pair}: write KEY=VALUE, e.g. --set scale=small")
    return {key: parse_yaml(value, f"--set {key}") for key, value in (pair.split("=", 1) for pair in pairs)}
