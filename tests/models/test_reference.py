"""The kernel of the external memory against its plain module: values and gradients, in double precision."""

import pytest
import torch
from gradients import with_gradients
from torch import nn

from pipeline.models import kernels
from pipeline.models.recurrent.encoder import MemoryGRU


@pytest.mark.parametrize("write", ["forget_update", "tanh_content"])
def test_the_external_memory(write):
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    module = MemoryGRU(4, 6, write).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    inputs = [torch.randn(2, 5, 4, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    ours = module(*inputs, mask)
    with kernels.disabled():
        theirs = module(*inputs, mask)
    assert ours[1].grad_fn.name() != theirs[1].grad_fn.name()
    # a softmax ignores its offset, of which only rounding is left
    leaves = [*inputs, *(weight for name, weight in module.named_parameters() if not name.endswith("offset"))]
    torch.testing.assert_close(with_gradients(ours, leaves), with_gradients(theirs, leaves), rtol=0, atol=1e-9)
