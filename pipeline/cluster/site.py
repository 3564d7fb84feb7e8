"""What a cluster wants to be told: `slurm/site.yaml`, from which slurm/profile.yaml makes its options."""

import re
from pathlib import Path

from pydantic import Field

from pipeline.schema import Closed, load_yaml, validate

SITE = Path("slurm/site.yaml")


class Site(Closed):
    """`slurm/site.yaml`; nothing in it changes a result."""

    partition: str = Field(description="Of jobs that want GPUs, and of all others where `cpu_partition` names none")
    cpu_partition: str | None = Field(default=None, description="Of jobs that want no GPU")
    account: str | None = Field(default=None, description="Charged; null = your default one")
    gres: str | None = Field(
        default=None,
        pattern=r"^gpu(:[A-Za-z]\w*(-\w+)*)?(:\d+)?$",
        description="GPUs as the site calls them, with their number on a node: gpu:a100:8; null = it counts them alone",
    )
    sbatch: str = Field(default="", description="What else sbatch is told of jobs that want GPUs: --qos=long")
    jobs: int = Field(default=50, ge=1, description="At once, waiting ones included; no more than the site allows you")

    @property
    def options(self) -> str:
        """Of sbatch, for jobs that want GPUs."""
        named = {"partition": self.partition, "account": self.account, "gres": self.gres}
        return " ".join([f"--{name}={value}" for name, value in named.items() if value] + self.sbatch.split())


def load_site(path: Path = SITE) -> Site:
    """Raises UserError naming the key, its value and what is allowed."""
    return validate(Site, load_yaml(path), str(path))


def card_of(gres: str) -> tuple[str, int | None]:
    """Type, empty where it is not said, and number of GPUs on a node, of `gpu:a100:8`."""
    kind, number = "", None
    for part in gres.split(":")[1:]:
        if re.fullmatch(r"\d+", part):
            number = int(part)
        else:
            kind = part
    return kind, number
