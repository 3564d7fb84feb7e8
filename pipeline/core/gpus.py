"""The GPUs that the environment names."""

import os

HIDDEN = ("", "-1", "NoDevFiles")
"""Entries that name no GPU. Slurm writes the last one for a job that requested none."""


def named_gpus() -> list[str] | None:
    """Return the GPUs in CUDA_VISIBLE_DEVICES, each once; None if the variable is not set."""
    if (named := os.environ.get("CUDA_VISIBLE_DEVICES")) is None:
        return None
    entries = map(str.strip, named.split(","))  # CUDA takes "0, 1"
    return list(dict.fromkeys(entry for entry in entries if entry not in HIDDEN))
