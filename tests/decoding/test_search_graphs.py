"""Searches replay CUDA graphs on a GPU, unless the run forbids it."""

from types import SimpleNamespace

import pytest
import torch

from pipeline.decoding.trained_model import TrainedModel
from pipeline.training import graph_cache


@pytest.mark.parametrize(
    ("device", "cuda_graphs", "found"), [("cuda", True, "graphs on cuda"), ("cuda", False, None), ("cpu", True, None)]
)
def test_searches_on_a_gpu_replay_graphs(monkeypatch, device, cuda_graphs, found):
    monkeypatch.setattr(graph_cache, "CudaRecorder", lambda device: f"graphs on {device}")
    spec = SimpleNamespace(training=SimpleNamespace(cuda_graphs=cuda_graphs))
    model = TrainedModel(spec, torch.nn.Linear(2, 2), torch.device(device), None, "", None)
    assert model.recorder() == found
