import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # read by the stages
    torch.set_num_threads(1)
