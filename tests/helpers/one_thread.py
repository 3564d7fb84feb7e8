"""A fixture for tests that compute."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Compute with one thread, in stages as well."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
