"""What the environment says of the job that this process belongs to."""

import os


def rank() -> int:
    return int(os.environ.get("RANK", "0"))


def world_size() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


def job_name() -> str:
    """Slurm's job id; the number of this process where it is the launcher's own."""
    return os.environ.get("SLURM_JOB_ID", str(os.getpid()))


def node_name() -> str:
    """Slurm's name of this node, which is what can be excluded."""
    return os.environ.get("SLURMD_NODENAME", os.uname().nodename)
