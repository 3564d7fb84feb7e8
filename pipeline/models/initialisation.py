"""First weights of the recurrent models (Multi-channel Encoder, section 4.2; DL4MT)."""

import torch
from torch import nn

from pipeline.config import RecurrentConfig
from pipeline.models.gru import GRU


@torch.no_grad()
def initialise(model: nn.Module, config: RecurrentConfig) -> None:
    """Draw every parameter of `model` from torch's global generator."""
    match config.initialisation:
        case "uniform":
            for parameter in model.parameters():
                parameter.uniform_(-config.init_scale, config.init_scale)
        case "orthogonal":
            for module in model.modules():
                orthogonal(module, config.init_scale)


def orthogonal(module: nn.Module, scale: float) -> None:
    """The own parameters of `module`: square matrices orthogonal, a GRU's three between states one by one; others
    normal with standard deviation `scale`; vectors that are added zero, the one that scores an attention normal."""
    for name, parameter in module.named_parameters(recurse=False):
        if isinstance(module, GRU) and name == "weight_state":
            for block in parameter.chunk(3):
                nn.init.orthogonal_(block)
        elif parameter.dim() == 2 and parameter.shape[0] == parameter.shape[1]:
            nn.init.orthogonal_(parameter)
        elif parameter.dim() == 2 or name == "score":
            parameter.normal_(std=scale)
        else:
            parameter.zero_()
