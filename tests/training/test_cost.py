import pytest
import torch

from pipeline.core.json_csv import read_json
from pipeline.core.records.training import Machine
from pipeline.training.progress import CostCounter

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def test_the_cost_of_all_starts_is_added_up(tmp_path):
    for first, last in ((0, 5), (3, 9)):
        cost = CostCounter(tmp_path, CPU, Machine(device="a", threads=1, processes=1, torch="2"), first)
        for _ in range(first, last):
            cost.count(tokens=100, flops=1e6)
        cost.write(last - 1)
        cost.write(last)
    written = read_json(tmp_path / "cost.json")
    assert [start["steps"] for start in written["starts"]] == [5, 6]
    total = written["total"]
    assert (total["starts"], total["steps"], total["tokens"], total["flops"]) == (2, 11, 1100, 1.1e7)
    assert total["gpu_hours"] == 0
    assert total["peak_memory_gib"] > 0.01
    assert {"started", "stopped", "node", "device", "seconds"} <= written["starts"][0].keys()


def test_gpu_hours_count_every_gpu(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda _: 3 << 30)
    cost = CostCounter(tmp_path, GPU, Machine(device="a", threads=1, processes=8, torch="2"), 0)
    cost.began -= 1800
    entry = cost.entry(1)
    assert entry.gpu_hours == pytest.approx(4, rel=1e-3)
    assert entry.peak_memory_gib == 3
