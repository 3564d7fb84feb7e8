import pytest
import torch
from small_models import CONFIGS


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(params=CONFIGS)
def config(request):
    """Every variation of both models."""
    return CONFIGS[request.param]
