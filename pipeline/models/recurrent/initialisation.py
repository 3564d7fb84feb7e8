"""First weights of the recurrent models (Multi-channel Encoder, section 4.3; DL4MT)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pipeline.models.recurrent.gru import GRU
from pipeline.models.recurrent.settings import RecurrentConfig


@torch.no_grad()
def initialise(model: nn.Module, config: RecurrentConfig) -> None:
    """Draw every parameter of `model` from torch's global generator."""
    if config.initialisation == "uniform":
        for parameter in model.parameters():
            parameter.uniform_(-config.init_scale, config.init_scale)
    else:
        for module in model.modules():
            orthogonal(module, config.init_scale)


def orthogonal(module: nn.Module, scale: float) -> None:
    """The own parameters of `module` as session 2 of DL4MT draws them: square matrices orthogonal, but for those of the
    readout; others normal with standard deviation `scale`; vectors that are added zero, the one that scores an
    attention normal."""
    for name, parameter in module.named_parameters(recurse=False):
        if parameter.dim() == 2:
            for matrix in separate_matrices(module, parameter):
                if matrix.shape[0] == matrix.shape[1] and not isinstance(module, nn.Linear):
                    nn.init.orthogonal_(matrix)
                else:
                    matrix.normal_(std=scale)
        elif name == "score":
            parameter.normal_(std=scale)
        else:
            parameter.zero_()


def separate_matrices(module: nn.Module, parameter: Tensor) -> Sequence[Tensor]:
    """The matrices that `parameter` is put together from: a GRU's three, or its gates' two as one where what it reads
    has another width than its state. That one is square too where the decoder reads an annotation."""
    if not isinstance(module, GRU):
        return [parameter]
    between_equals = parameter.shape[1] == module.width
    return parameter.chunk(3) if between_equals else parameter.split([2 * module.width, module.width])
