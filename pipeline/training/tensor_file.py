"""A file of named tensors with a few facts about them, that is known to be whole and to be of one run.

The format is safetensors, which can't hold code. The facts are one JSON object in its header: always the key of the
run (`key`) and a digest of names, shapes, bytes and facts (`digest`), so that a damaged file is noticed.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write
from pipeline.core.retries import read_with_retries
from pipeline.training.tensor_header import FACTS, DamagedFileError, facts_in


def write_tensor_file(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write `tensors` and `facts` so that `path` is whole or absent, and read them back.

    Raises:
        UserError: the disk is full, can't be written (what `path` held before is kept), or can't be read back.
        DamagedFileError: the file reads back differently.
    """
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    facts = facts | {"digest": digest_of(tensors, facts)}
    content = save(tensors, {FACTS: json.dumps(facts, sort_keys=True)})
    with atomic_write(path, "wb") as handle:
        handle.write(content)
    if read_with_retries(path) != content:
        raise DamagedFileError(f"{path}: reads back differently from what was written")


def read_tensor_file(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors (on the CPU) and the facts that were given, after checking the digest. Raises as `read_facts` does."""
    try:
        content = read_with_retries(path)
        tensors = load(content)
    except (SafetensorError, ValueError, FileNotFoundError) as error:
        raise DamagedFileError(f"{path}: {error}") from error
    facts = facts_in(content, path)
    if facts.pop("digest") != digest_of(tensors, facts):
        raise DamagedFileError(f"{path}: content does not match its digest")
    return tensors, facts


def read_weights(path: Path, key: str | None, remedy: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The same of the weights of the run `key`, or of any. Raises UserError: they are damaged, or another run's."""
    try:
        tensors, facts = read_tensor_file(path)
    except DamagedFileError as error:
        raise UserError(f"can't be loaded: {error}; {remedy}") from error
    if key is not None and facts["key"] != key:
        raise UserError(
            f"{path}: belongs to another run (key {facts['key'][:12]}, not {key[:12]}), or run.yaml or its corpus "
            "changed since; train the run that it lies in again"
        )
    return tensors, facts


def digest_of(tensors: dict[str, Tensor], facts: dict[str, Any]) -> str:
    """SHA-256 of names, types, shapes, bytes and facts."""
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def tensors_of(model: torch.nn.Module) -> dict[str, Tensor]:
    """Parameters and persistent buffers of `model`, each once however many names it has.

    Parameters without a gradient are left out: they are another run's, which has them (parts.py).
    """
    frozen = {name for name, weight in model.named_parameters(remove_duplicate=False) if not weight.requires_grad}
    unique: dict[object, tuple[str, Tensor]] = {}
    for name, tensor in model.state_dict().items():
        if name in frozen:
            continue
        unique.setdefault((tensor.data_ptr(), tensor.shape) if tensor.numel() else name, (name, tensor))
    return dict(unique.values())


def load_into(model: torch.nn.Module, tensors: dict[str, Tensor]) -> None:
    """Undo `tensors_of`. Raises DamagedFileError when names or shapes are not those of `model`."""
    expected = {name: tensor.shape for name, tensor in tensors_of(model).items()}
    given = {name: tensor.shape for name, tensor in tensors.items()}
    if expected != given:
        differing = sorted(set(expected.items()) ^ set(given.items()))[0][0]
        raise DamagedFileError(f"holds other tensors than the model, first {differing}")
    model.load_state_dict(tensors, strict=False)
