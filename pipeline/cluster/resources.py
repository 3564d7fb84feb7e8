"""Resources that a job requests, and the site's options for sbatch from `slurm/site.yaml`."""

import argparse
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from pipeline.core.command_line import Argument
from pipeline.core.errors import UserError
from pipeline.core.schema import Closed, load_yaml_as

LONGEST_WARNING_S = 180  # before its time limit, when a job is asked to save
MEMORY = ("mem", "mem-per-cpu", "mem-per-gpu")
"""Options of which sbatch accepts one."""
INSTEAD = {
    "array chdir dependency error job-name open-mode output signal": "launchers need it to find, follow and stop jobs; "
    "remove it",
    "parsable quiet test-only wait wrap": "launchers read the id of a job, which sbatch prints at once; remove it",
    "gpus gpus-per-node gpus-per-socket gpus-per-task": "set `gpus` in workflow/scales, and `gres:` to their type",
    "ntasks ntasks-per-node tasks-per-node ntasks-per-gpu": "a job has one task per GPU; remove it",
    "cpus-per-task cpus-per-gpu": "set `threads` in workflow/scales instead",
    "tres-per-task": "set `gpus` and `threads` in workflow/scales instead",
    "nodes": "set `nodes` in workflow/scales instead",
    "time": "set `runtime` in workflow/scales instead",
    "cluster clusters": "run `export SLURM_CLUSTERS=…` instead, which squeue reads, too",
}
"""Remedies for options of sbatch that contradict ours, or that squeue would have to know."""
SPELT_OUT = (*" ".join(INSTEAD).split(), *MEMORY, "account", "exclude", "gres", "no-requeue", "partition", "requeue")
"""Options that launchers refuse or read; sbatch would know them by their first letters, too."""


def non_negative(text: str, least: int = 0) -> int:
    """Return the whole number in a `text`, which must be at least `least`.

    Raises:
        argparse.ArgumentTypeError: The number is too small.
        ValueError: The text is no whole number.
    """
    number = int(text)
    if number < least:
        raise argparse.ArgumentTypeError(f"must be at least {least}, got {number}")
    return number


def positive(text: str) -> int:
    """Parse a whole number of at least 1."""
    return non_negative(text, least=1)


Count = Annotated[int, Argument(convert=non_negative)]
Positive = Annotated[int, Argument(convert=positive)]


@dataclass(frozen=True)
class Resources:
    """Resources that a job requests.

    Attributes:
        gpus: GPUs in all.
        nodes: Number of nodes.
        tasks: Processes in all; by default one per GPU, or one.
        cpus: CPU cores of each process.
        mem_mb: Memory of each node, MB; that in `sbatch` replaces it.
        runtime_min: Time limit of one start, minutes.
        sbatch: Further options of sbatch, such as '--partition=gpu --account=me'.
    """

    gpus: Count = 0
    nodes: Positive = 1
    tasks: Count = 0
    cpus: Positive = 1
    mem_mb: Positive = 8000
    runtime_min: Positive = 60
    sbatch: str = ""

    def __post_init__(self):
        for what, count in (("tasks", self.processes), ("gpus", self.lent_gpus)):
            if count % self.nodes:
                raise UserError(f"--{what} {count} can't be spread evenly over --nodes {self.nodes}; change one")

    @property
    def lent_gpus(self) -> int:
        """Return the GPUs that the job gets in all: no more than its nodes have, by `--gres` in `sbatch`."""
        on_a_node = gres_of(self.sbatch)[1]
        return min(self.gpus, on_a_node * self.nodes) if on_a_node else self.gpus

    @property
    def processes(self) -> int:
        """Return the number of processes over all nodes."""
        return self.tasks or max(self.nodes, self.lent_gpus)

    @property
    def warning_s(self) -> int:
        """Return how many seconds before the time limit Slurm signals; it may do so half a minute earlier."""
        return min(LONGEST_WARNING_S, self.runtime_min * 60 // 6)

    def as_submitit(self, unfit: Iterable[str] = ()) -> dict[str, object]:
        """Return the arguments of `SlurmExecutor.update_parameters`, which exclude `unfit` nodes, too.

        Of `--gres=gpu:a100:8,tmpdisk:100`, the job takes as many of the node's eight GPUs as it requests.
        """
        options, gpus = parse_options(self.sbatch), self.lent_gpus // self.nodes or None
        gpu_type, _, gres = gres_of(self.sbatch)
        excluded = [*filter(None, [str(options.pop("exclude", ""))]), *unfit]
        if options.pop("gres", None) and gpus:
            gres, gpus = [":".join(filter(None, ("gpu", gpu_type, str(gpus)))), *gres], None
        return {
            "nodes": self.nodes,
            "ntasks_per_node": self.processes // self.nodes,
            "cpus_per_task": self.cpus,
            "gpus_per_node": gpus,
            # MB are 10^6 bytes to Snakemake, 2^20 to Slurm.
            "mem": None if any(name in options for name in MEMORY) else f"{self.mem_mb}M",
            "time": self.runtime_min,
            "exclude": ",".join(excluded) or None,
            "signal_delay_s": self.warning_s,
            "additional_parameters": ({} if "no-requeue" in options else {"requeue": True})
            | options
            | ({"gres": ",".join(gres)} if gres else {}),
        }


SITE = Path("slurm/site.yaml")


class Site(Closed):
    """`slurm/site.yaml`; nothing in it changes a result."""

    partition: str = Field(description="Partition of GPU jobs, and of all other jobs unless `cpu_partition` is set")
    cpu_partition: str | None = Field(default=None, description="Partition of jobs without GPUs")
    account: str | None = Field(
        default=None, description="Account to charge; null = $SBATCH_ACCOUNT, or your default account"
    )
    gres: str | None = Field(
        default=None,
        description="The site's name for GPUs and their number on a node: gpu:a100:8; null = unnamed",
    )
    sbatch: str = Field(default="", description="Further sbatch options of GPU jobs: --qos=long")
    jobs: int = Field(
        default=50,
        ge=1,
        le=10**6,
        description="Maximum number of jobs at once, pending ones included; at most the limit of the site",
    )

    @property
    def options(self) -> str:
        """Return the sbatch options of jobs that request GPUs."""
        named = {"partition": self.partition, "account": self.account, "gres": self.gres}
        return " ".join([f"--{name}={value}" for name, value in named.items() if value] + self.sbatch.split())

    @model_validator(mode="after")
    def is_understood_by_launchers(self):
        """Refuse what launchers refuse, before any job is submitted."""
        try:
            gres_of(self.options)
        except UserError as error:
            raise ValueError(str(error)) from None
        return self


def load_site(path: Path = SITE) -> Site:
    """Return the site's options.

    Raises:
        UserError: A key or value is wrong.
    """
    return load_yaml_as(Site, path)


def parse_options(options: str) -> dict[str, object]:
    """Return `--qos=long --exclusive` by names without dashes: {"qos": "long", "exclusive": True}.

    Raises:
        UserError: The options have another form, or one contradicts what launchers set.
    """
    try:
        words = shlex.split(options)
    except ValueError as error:
        raise UserError(f"sbatch options {options!r}: {error}; close the quotes") from error
    parsed: dict[str, object] = {}
    for option in words:
        shown, equals, value = option.partition("=")
        name = shown.removeprefix("--").replace("_", "-")  # as submitit writes it
        if not shown.startswith("--") or not name:
            raise UserError(f"sbatch option {option!r}: write it as --name or --name=value")
        if remedy := next((remedy for names, remedy in INSTEAD.items() if name in names.split()), ""):
            raise UserError(f"sbatch option {shown!r}: {remedy}")
        if name not in SPELT_OUT and (whole := next((known for known in SPELT_OUT if known.startswith(name)), "")):
            raise UserError(f"sbatch option {shown!r}: is short for --{whole}; write the whole name")
        if name in parsed:
            raise UserError(f"sbatch option {shown!r}: is repeated; write it once")
        parsed[name] = value if equals else True
    if len(memory := [f"--{name}" for name in MEMORY if name in parsed]) > 1:
        raise UserError(f"sbatch options {' and '.join(memory)}: Slurm accepts one of them; remove the others")
    if {"requeue", "no-requeue"} <= parsed.keys():
        raise UserError("sbatch options --requeue and --no-requeue: contradict each other; remove one")
    return parsed


def gres_of(options: str) -> tuple[str, int | None, list[str]]:
    """Return type of GPUs ("" if unnamed), number on a node and other resources of `--gres=gpu:a100:8,nvme:1`.

    Raises:
        UserError: The option has another form.
    """
    gres = str(parse_options(options).get("gres", "gpu"))
    parts = re.sub(r"\(S:[^)]*\)", "", gres).split(",")  # without sockets, which sinfo adds
    gpus, *others = sorted(parts, key=lambda part: part.split(":")[0] != "gpu")
    found = re.fullmatch(r"gpu(:(?!\d+$)(?P<type>[\w.-]+))?(:(?P<number>\d+))?", gpus)
    if not found or any(part.split(":")[0] == "gpu" for part in others):
        raise UserError(f"--gres={gres}: name one kind of GPU, as gpu:TYPE:NUMBER or gpu:NUMBER, then other resources")
    return found["type"] or "", int(found["number"]) if found["number"] else None, others
