"""Files of named tensors with metadata and a digest: weights and resume files.

The format is safetensors, which cannot hold code. The metadata is one JSON object in the header. It always has the key
of the run (`key`) and a digest of names, shapes, bytes and metadata (`digest`), which reveals a damaged file.
"""

import hashlib
import json
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from pipeline.core.errors import REPAIR, UserError
from pipeline.core.files import atomic_write
from pipeline.core.retries import read_with_retries
from pipeline.training.checkpoint_files import METADATA_ENTRY, DamagedFileError, parse_metadata

RESTORE_CODE = "the model's code has changed since; restore it, or delete the folder of the run and train it again"
"""The remedy for weights of other names or shapes than those of the model that the same settings describe."""

WRITES_AT_ONCE = 2
"""Writes queued or running, each with a copy of its tensors; a third one blocks."""


def write_tensor_file(path: Path, tensors: dict[str, Tensor], metadata: dict[str, Any]) -> None:
    """Write a tensor file atomically, and verify it by reading it back.

    Args:
        path: The file.
        tensors: Tensors of any shape and device, by name.
        metadata: JSON object with the key of the run as `key`.

    Raises:
        UserError: The disk is full or cannot be written (a previous file is kept), or `path` cannot be read back.
        DamagedFileError: The file reads back differently.
    """
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    metadata = metadata | {"digest": digest_of(tensors, metadata)}
    content = save(tensors, {METADATA_ENTRY: json.dumps(metadata, sort_keys=True)})
    with atomic_write(path, "wb") as handle:
        handle.write(content)
    if read_with_retries(path) != content:
        raise DamagedFileError(f"{path}: reads back differently from what was written")


def read_tensor_file(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return tensors (…) by name on the CPU and metadata, without `digest`, of `path`, after checking the digest.

    Raises:
        DamagedFileError: The file is missing or damaged.
        UserError: The file cannot be read.
    """
    try:
        content = read_with_retries(path)
        tensors = load(content)
    except (SafetensorError, ValueError, FileNotFoundError) as error:
        raise DamagedFileError(f"{path}: {error}") from error
    metadata = parse_metadata(content, path)
    if metadata.pop("digest") != digest_of(tensors, metadata):
        raise DamagedFileError(f"{path}: content does not match its digest")
    return tensors, metadata


def read_weights(path: Path, key: str | None, remedy: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return weights as `read_tensor_file`, of the run with this `key`; `remedy` says what to do about damage.

    Raises:
        UserError: The file is damaged, or belongs to another run.
    """
    try:
        tensors, metadata = read_tensor_file(path)
    except DamagedFileError as error:
        raise UserError(f"cannot load {error}; {remedy}") from error
    if key is not None and metadata["key"] != key:
        raise UserError(
            f"{path}: belongs to another run (key {metadata['key'][:12]}, not {key[:12]}), or run.yaml or its corpus "
            "has changed since; train the run of this folder again"
        )
    return tensors, metadata


def load_weights(model: torch.nn.Module, path: Path, key: str | None = None) -> dict[str, Any]:
    """Return the metadata of the weights file `path` of the run `key`, None for any, loaded into `model`.

    Raises:
        UserError: The file is damaged, does not fit the model, or belongs to another run than `key`.
    """
    tensors, metadata = read_weights(path, key, REPAIR)
    try:
        load_into(model, tensors)
    except DamagedFileError as error:
        raise UserError(f"{path}: cannot be loaded: {error}; {RESTORE_CODE}") from error
    return metadata


def digest_of(tensors: dict[str, Tensor], metadata: dict[str, Any]) -> str:
    """Return the SHA-256 of names, types, shapes (…) and bytes of `tensors` on the CPU, and of `metadata`."""
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def tensors_of(model: torch.nn.Module) -> dict[str, Tensor]:
    """Return parameters and persistent buffers of `model`, each once however many names it has.

    Parameters without a gradient are left out: they belong to another run, which stores them (run_model.py).

    Args:
        model: On any device.

    Returns:
        Tensors by name, each with the shape of its parameter; they share the model's memory.
    """
    frozen = {name for name, weight in model.named_parameters(remove_duplicate=False) if not weight.requires_grad}
    unique: dict[object, tuple[str, Tensor]] = {}
    for name, tensor in model.state_dict().items():
        if name in frozen:
            continue
        unique.setdefault((tensor.data_ptr(), tensor.shape) if tensor.numel() else name, (name, tensor))
    return dict(unique.values())


def load_into(model: torch.nn.Module, tensors: dict[str, Tensor]) -> None:
    """Load `tensors` (…), from `tensors_of` on any device, into `model`.

    Raises:
        DamagedFileError: Names or shapes are not those of `model`.
    """
    expected = {name: tensor.shape for name, tensor in tensors_of(model).items()}
    actual = {name: tensor.shape for name, tensor in tensors.items()}
    if expected != actual:
        differing = sorted(set(expected.items()) ^ set(actual.items()))[0][0]
        raise DamagedFileError(f"holds other tensors than the model, first {differing}")
    model.load_state_dict(tensors, strict=False)


class BackgroundWriter:
    """A thread that runs writes in order; a failure is raised by a later call, and fails the writes behind it."""

    def __init__(self):
        self.pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoints")
        self.pending: deque[Future] = deque()

    def submit(self, write: Callable[[], object]) -> None:
        """Queue a write; block while `WRITES_AT_ONCE` are pending."""
        while len(self.pending) >= WRITES_AT_ONCE or (self.pending and self.pending[0].done()):
            self.pending.popleft().result()
        before = [*self.pending]

        def in_order() -> None:
            for earlier in before:
                earlier.result()
            write()

        self.pending.append(self.pool.submit(in_order))

    def finish(self) -> None:
        """Wait for all writes, and raise the first failure."""
        while self.pending:
            self.pending.popleft().result()
