"""What a cluster wants to be told: `slurm/site.yaml`, from which slurm/profile.yaml makes its options."""

import re
import shlex
from pathlib import Path

from pydantic import Field, model_validator

from pipeline.core.errors import UserError
from pipeline.core.schema import Closed, load_yaml, validate

SITE = Path("slurm/site.yaml")


class Site(Closed):
    """`slurm/site.yaml`; nothing in it changes a result."""

    partition: str = Field(description="Of jobs that want GPUs, and of all others where `cpu_partition` names none")
    cpu_partition: str | None = Field(default=None, description="Of jobs that want no GPU")
    account: str | None = Field(default=None, description="Charged; null = your default one")
    gres: str | None = Field(
        default=None,
        description="GPUs as the site calls them, with their number on a node: gpu:a100:8; null = it counts them alone",
    )
    sbatch: str = Field(default="", description="What else sbatch is told of jobs that want GPUs: --qos=long")
    jobs: int = Field(
        default=50, ge=1, le=10**6, description="At once, waiting ones included; no more than the site allows you"
    )

    @property
    def options(self) -> str:
        """Of sbatch, for jobs that want GPUs."""
        named = {"partition": self.partition, "account": self.account, "gres": self.gres}
        return " ".join([f"--{name}={value}" for name, value in named.items() if value] + self.sbatch.split())

    @model_validator(mode="after")
    def is_understood_by_launchers(self):
        try:
            gres_of(self.options)
        except UserError as error:
            raise ValueError(str(error)) from None
        return self


def load_site(path: Path = SITE) -> Site:
    """Raises UserError naming the key, its value and what is allowed."""
    return validate(Site, load_yaml(path), str(path))


def parse_options(options: str) -> dict[str, object]:
    """`--qos=long --exclusive` as {"qos": "long", "exclusive": True}. Raises UserError where it is spelt otherwise."""
    try:
        words = shlex.split(options)
    except ValueError as error:
        raise UserError(f"sbatch options {options!r}: {error}; close what is quoted") from error
    parsed: dict[str, object] = {}
    for option in words:
        name, equals, value = option.partition("=")
        if not name.startswith("--"):
            raise UserError(f"sbatch option {option!r}: write it as --name or --name=value")
        if name.removeprefix("--") in parsed:
            raise UserError(f"sbatch option {name!r}: is there twice; write it once")
        parsed[name.removeprefix("--")] = value if equals else True
    return parsed


def gres_of(options: str) -> tuple[str, int | None, list[str]]:
    """Type of GPUs, or "", number on a node, and all else of --gres=gpu:a100:8,nvme:1. Raises UserError for others."""
    gres = str(parse_options(options).get("gres", "gpu"))
    parts = re.sub(r"\(S:[^)]*\)", "", gres).split(",")  # without sockets, which sinfo adds
    gpus, *others = sorted(parts, key=lambda part: part.split(":")[0] != "gpu")
    found = re.fullmatch(r"gpu(:(?!\d+$)(?P<card>[\w.-]+))?(:(?P<number>\d+))?", gpus)
    if not found or any(part.split(":")[0] == "gpu" for part in others):
        raise UserError(f"--gres={gres}: name one kind of GPU, as gpu:TYPE:NUMBER or gpu:NUMBER, then what is none")
    return found["card"] or "", int(found["number"]) if found["number"] else None, others
