"""The CPU cores that this process may use."""

import contextlib
import os
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
"""Folder in which a container finds its own limits. Outside of a container, it has none."""
CPU_LIMITS = ("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")
"""Files with CPU time and period in µs, of both versions of control groups; without a limit the time is `max` or -1."""


def usable_cores() -> int:
    """Return the number of cores that this process may use, at least 1.

    A container may see all cores of its host but get the time of a few. More threads than those wait for each other.
    """
    cores = len(os.sched_getaffinity(0))
    for names in CPU_LIMITS:
        with contextlib.suppress(OSError, ValueError):
            time_us, period_us = map(int, " ".join((CGROUPS / name).read_text() for name in names).split())
            if time_us > 0:
                cores = min(cores, max(1, time_us // period_us))
    return cores
