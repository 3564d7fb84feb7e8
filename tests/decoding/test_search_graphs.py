"""Searches replay CUDA graphs only if they are asked to."""

from types import SimpleNamespace

import pytest
import torch

from pipeline.core.errors import UserError
from pipeline.decoding import trained_model
from pipeline.decoding.trained_model import TrainedModel

NAME = "REPRISE_SEARCH_GRAPHS"


def recorder(monkeypatch, device: str = "cuda", cuda_graphs: bool = True):
    """Return the recorder of searches that a run on a device would use."""
    monkeypatch.setattr(trained_model, "CudaRecorder", lambda device: f"graphs on {device}")
    spec = SimpleNamespace(training=SimpleNamespace(cuda_graphs=cuda_graphs))
    return TrainedModel(spec, torch.nn.Linear(2, 2), torch.device(device), None, "", None).recorder()


@pytest.mark.parametrize("text", [None, "0"])
def test_searches_are_eager_by_default(monkeypatch, text):
    monkeypatch.delenv(NAME, raising=False)
    if text:
        monkeypatch.setenv(NAME, text)
    assert recorder(monkeypatch) is None


@pytest.mark.parametrize(
    ("device", "cuda_graphs", "found"), [("cuda", True, "graphs on cuda"), ("cuda", False, None), ("cpu", True, None)]
)
def test_searches_on_a_gpu_replay_graphs_when_asked(monkeypatch, device, cuda_graphs, found):
    monkeypatch.setenv(NAME, "1")
    assert recorder(monkeypatch, device, cuda_graphs) == found


@pytest.mark.parametrize("text", ["", "true", "2", "yes"])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_an_unknown_wish_for_search_graphs_is_an_error(monkeypatch, device, text):
    monkeypatch.setenv(NAME, text)
    with pytest.raises(UserError, match=f"^{NAME}={text}: set 1 to search by CUDA graphs, or 0 to search eagerly$"):
        recorder(monkeypatch, device)
