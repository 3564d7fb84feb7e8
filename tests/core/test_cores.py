"""Cores count as far as the process may use them."""

import os

import pytest
from fabricated import touch

from pipeline.core import cores


@pytest.mark.parametrize(
    ("limits", "usable"),
    [
        ({}, 8),
        ({"cpu.max": "max 100000\n"}, 8),
        ({"cpu.max": "350000 100000\n"}, 3),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "6400000 100000\n"}, 8),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
        ({"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "50000\n"}, 2),
        ({"cpu/cpu.cfs_quota_us": "100000\n"}, 8),
    ],
)
def test_cores_are_limited_by_the_cpu_time_of_a_container(limits, usable, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(cores, "CGROUPS", tmp_path)
    for name, text in limits.items():
        touch(tmp_path / name, text)
    assert cores.usable_cores() == usable
