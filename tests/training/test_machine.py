import os

import pytest
import torch

from pipeline.errors import UserError
from pipeline.training.machine import choose_device, choose_threads, keep_heap


def test_a_gpu_is_taken_where_there_is_one_unless_the_cpu_is_asked_for(monkeypatch):
    taken = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    assert choose_device("auto", 1) == torch.device("cuda", 1) == taken[0]
    assert choose_device("cpu", 1) == torch.device("cpu")
    with pytest.raises(UserError, match="process 2 of this machine has no GPU of its own: 2 are visible"):
        choose_device("auto", 2)


def test_threads_are_those_asked_for_else_of_the_environment_else_all_cores_shared(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert choose_threads(None) == 8
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert choose_threads(None) == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert choose_threads(None) == 3
    assert choose_threads(5) == 5
    with pytest.raises(UserError, match="--threads must be at least 1, got 0"):
        choose_threads(0)


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="counts mappings of a Linux process")
def test_freed_memory_stays_with_the_process():
    keep_heap()
    size = 400 << 20
    torch.ones(size, dtype=torch.uint8)

    def resident() -> int:
        with open("/proc/self/statm") as handle:
            return int(handle.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    assert resident() > size
