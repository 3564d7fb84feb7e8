"""The forms of an operator that are measured on a GPU agree within 2 % of the largest value, in bfloat16."""

import operators
import pytest
import torch
from operators import Sizes

GPU_ONLY = ("memory-efficient", "cuDNN")
SMALL = Sizes(rows=6, length=5, width=16, heads=2, vocabulary=50, branches=3)


@pytest.mark.parametrize("family", operators.FAMILIES)
def test_all_forms_of_an_operator_agree(family):
    torch.manual_seed(4)
    forms = operators.FAMILIES[family](torch.device("cpu"), SMALL)
    computed = {name: form() for name, form in forms.items() if name.split(", ")[1] not in ("torch's own", *GPU_ONLY)}
    assert len(computed) >= 2
    first = next(iter(computed.values())).float()
    for name, value in computed.items():
        assert float((value.float() - first).abs().max()) <= 0.02 * float(first.abs().max()), name


def test_the_own_fused_loss_of_torch_runs():
    forms = operators.cross_entropies(torch.device("cpu"), SMALL)
    assert forms["cross-entropy, torch's own"]().isfinite()
