"""What training goes on from: the weights and the optimiser's moments under one name each, and the state."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pipeline.core.errors import UserError
from pipeline.training.optimiser import Optimiser
from pipeline.training.state import TrainingState
from pipeline.training.tensor_file import load_into, read_tensor_file, tensors_of
from pipeline.training.tensor_header import DamagedFileError

MODEL, MOMENTS = "model.", "adam."  # whatever the optimiser: the name is older than the choice


@dataclass(frozen=True)
class ResumePoint:
    """The content of a resume file."""

    path: Path
    tensors: dict[str, Tensor]
    facts: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> "ResumePoint":
        """Raises DamagedFileError."""
        return cls(path, *read_tensor_file(path))

    def restore(self, model: torch.nn.Module, optimiser: Optimiser) -> TrainingState:
        """Set weights and moments, return the state. Raises UserError when they are not those of `model`."""
        try:
            load_into(model, without_prefix(MODEL, self.tensors))
        except DamagedFileError as error:
            raise UserError(
                f"{self.path}: {error}; the code has changed since it was written. To start anew, add --restart"
            ) from error
        optimiser.load_tensors(without_prefix(MOMENTS, self.tensors))
        return TrainingState.from_dict(self.facts["state"])


def everything(model: torch.nn.Module, optimiser: Optimiser) -> dict[str, Tensor]:
    """The tensors of a resume file."""
    return with_prefix(MODEL, tensors_of(model)) | with_prefix(MOMENTS, optimiser.tensors())


def with_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {prefix + name: tensor for name, tensor in tensors.items()}


def without_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
