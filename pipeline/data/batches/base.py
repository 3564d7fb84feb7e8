"""Batches, splits and training batches: what text, speech and trees have in common.

Dimensions: B sequences, S source positions, T target positions.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from pipeline.core.errors import UserError
from pipeline.data.sequence_store import TokenStore
from pipeline.models.settings import BOS, EOS, PAD

ALIGNED = 16
"""Alignment in bytes of each tensor in a packed buffer."""


@dataclass(frozen=True)
class Batch:
    """B sequences with targets tgt_in (B, T) = BOS + y and tgt_out (B, T) = y + EOS, padded with PAD."""

    host_values: ClassVar[tuple[str, ...]] = ("real_targets",)
    """Properties computed on the host and copied with the batch, so that reading them never waits for the device."""
    host_values_on_grid: ClassVar[tuple[str, ...]] = ("on_grid", "num_tokens")
    """The same for a batch on the grid, whose tensors depend only on its shape."""

    @cached_property
    def on_grid(self) -> bool:
        """True if rows and positions were added to reach a shape of the grid (`fitted_to`)."""
        return False

    @cached_property
    def real_targets(self) -> Tensor:
        """Indices (N,) int64 of the targets in the flattened tgt_out, rising, padding excluded."""
        return (vars(self)["tgt_out"].flatten() != PAD).nonzero().squeeze(1)

    @property
    def padded(self) -> bool | None:
        """True if the source is padded; None if only the device knows."""
        return None

    @cached_property
    def num_tokens(self) -> int:
        """Number of predicted target positions, EOS included, padding excluded."""
        return len(self.real_targets)

    @property
    def buffer(self) -> Tensor | None:
        """The bytes (nbytes,) of all tensors, if they are `packed` or a copy of packed tensors; else None."""
        return vars(self).get("_buffer")

    def to(self, device: torch.device | str) -> Self:
        """Return a copy of the batch, made asynchronously, as one buffer if it is packed."""
        buffer = self.buffer
        if buffer is None:
            return self._map_tensors(lambda part: part.to(device, non_blocking=True))
        moved = buffer.to(device, non_blocking=True)
        return self._in_buffer(moved, lambda part: buffer_view(moved, int(part.storage_offset()) * part.itemsize, part))

    def packed(self, pin: bool) -> Self:
        """Return the batch with tensors that are views of one buffer.

        With `pin` it is in pinned memory, which a GPU copies while the host continues.
        """
        parts = [part for part in self._values().values() if isinstance(part, Tensor)]
        ends = np.cumsum([-(-part.nbytes // ALIGNED) * ALIGNED for part in parts]).tolist()
        buffer = torch.empty(ends[-1], dtype=torch.uint8)
        if pin:
            buffer = buffer.pin_memory()
        begins = {id(part): begin for part, begin in zip(parts, [0, *ends], strict=False)}
        return self._in_buffer(buffer, lambda part: buffer_view(buffer, begins[id(part)], part).copy_(part))

    @property
    def signature(self) -> tuple[object, ...]:
        """Equal for batches that a device computes by the same kernels on the same memory layout."""
        shapes = [tuple(part.shape) if isinstance(part, Tensor) else None for part in self._values().values()]
        return type(self).__name__, self.padded, *shapes

    def fitted_to(self, rows: int, source: int, target: int) -> Self:
        """Return the batch padded to a shape of the grid; the loss and its gradients stay the same.

        Added rows have no target. Added positions hold PAD, or no sound.

        Args:
            rows: Number of sequences, at least B.
            source: Number of source positions, at least S; ignored for text without a source.
            target: Number of target positions, at least T.
        """
        fitted = self._fitted(rows, source, target)
        vars(fitted).update(on_grid=True, num_tokens=self.num_tokens)
        return fitted

    def _fitted(self, rows: int, source: int, target: int) -> Self:
        raise NotImplementedError

    def _in_buffer(self, buffer: Tensor, change: Callable[[Tensor], Tensor]) -> Self:
        changed = self._map_tensors(change)
        vars(changed)["_buffer"] = buffer
        return changed

    def _values(self) -> dict[str, Any]:
        host_values = self.host_values_on_grid if self.on_grid else self.host_values
        return {name: getattr(self, name) for name in (*(field.name for field in fields(self)), *host_values)}

    def _map_tensors(self, change: Callable[[Tensor], Tensor]) -> Self:
        parts = {k: change(part) if isinstance(part, Tensor) else part for k, part in self._values().items()}
        changed = replace(self, **{field.name: parts.pop(field.name) for field in fields(self)})
        vars(changed).update(parts)
        return changed


def pad_to(x: Tensor, *shape: int, value: float = PAD) -> Tensor:
    """Copy `x` (…) into the corner of a tensor of a `shape`, nowhere smaller, that holds `value` elsewhere."""
    out = x.new_full(shape, value)
    out[tuple(slice(length) for length in x.shape)] = x
    return out


def buffer_view(buffer: Tensor, begin: int, like: Tensor) -> Tensor:
    """Return a `buffer` (nbytes,) from byte `begin`, aligned for the type, in the type and shape (…) of `like`."""
    return buffer[begin : begin + like.nbytes].view(like.dtype).view(like.shape)


class EncodedSplit(ABC):
    """The target side of one split of an encoded corpus.

    Attributes:
        tgt_lengths: Target lengths, EOS included, (sequences,).
        src_lengths: Source lengths, (sequences,); target lengths if there is no source.
    """

    def __init__(self, corpus_folder: Path, split: str):
        self.folder = Path(corpus_folder)
        self.name = f"{corpus_folder}: split {split}"
        self.tgt = TokenStore(self.folder / f"{split}.tgt")
        self.src_lengths = self.tgt_lengths = self.tgt.lengths() + 1

    def targets(self, indices: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return tgt_in = BOS + y and tgt_out = y + EOS, (B, T) int64, of the sequences `indices` (B,)."""
        tgt_in = self.tgt.padded(indices, first=BOS, last=None, pad=PAD)
        return torch.from_numpy(tgt_in), torch.from_numpy(self.tgt.padded(indices, first=None, last=EOS, pad=PAD))

    def longest(self, indices: np.ndarray) -> int:
        """Return the number of positions of the longest sequence, which limits the rows of a micro-batch."""
        return int(self.src_lengths[indices].max())

    def check_budget(self, found: str, longest: int, key: str, budget: int | None, limit: str) -> None:
        """Check that `found`, such as "a pair has 70 subwords on a side", fits into `budget`; None sets no limit.

        The settings `key` and `limit` bound a step or micro-batch and, in turn, the `longest` sequence.

        Raises:
            UserError: The longest sequence has more positions than `budget`.
        """
        if budget is not None and longest > budget:
            raise UserError(f"{self.name}: {found} but {key} is {budget}; raise {key} or lower {limit}")

    @abstractmethod
    def batch(self, indices: np.ndarray) -> Any:
        """Return the sequences `indices` (B,) as a batch."""


SplitT = TypeVar("SplitT", bound=EncodedSplit)
BatchT = TypeVar("BatchT", bound=Batch)


class TrainingBatches(ABC, Generic[SplitT, BatchT]):
    """The training steps of a run; `len()` is the number of steps in every epoch.

    Attributes:
        pairs: The split that is trained on.
        micro_batch_positions: Maximum number of positions of a micro-batch, with padding; does not change the steps.
        sequences: Number of sequences in an epoch.
        left_out: Number of sequences that are not trained on.
        padding: Share of padding in the positions of an epoch.
        longest: Positions of the longest sequence.
        lowered_to: Positions of a micro-batch after memory ran out; None if the setting holds.
    """

    pairs: SplitT
    micro_batch_positions: int
    longest: int
    lowered_to: int | None = None
    sequences: int
    left_out: int
    padding: float

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def sequences_of(self, step: int) -> np.ndarray:
        """Return the indices of the sequences of global training step `step` (from 0)."""

    @abstractmethod
    def heaviest_step(self) -> np.ndarray:
        """Return the indices of the sequences of a step with as many attention weights as any step of any epoch."""

    def batch(self, indices: np.ndarray, step: int | None) -> BatchT:
        """Return the sequences `indices` (B,) as a batch, with the noise of global `step`; None adds no noise."""
        return self.pairs.batch(indices)

    def micro_batches(self, step: int, rank: int = 0, world_size: int = 1) -> list[BatchT]:
        """Return the micro-batches of global `step`, from 0, that process `rank` of `world_size` computes.

        Process r computes micro-batches r, r + world_size, r + 2 * world_size, …
        """
        return self.step_data(step, rank, world_size)[0]

    def step_data(self, step: int, rank: int, world_size: int) -> tuple[list[BatchT], int, int]:
        """Return `micro_batches`, and the target positions (padding excluded) and sequences of all processes."""
        indices = self.sequences_of(step)
        own = [self.batch(part, step) for part in self._split(indices)[rank::world_size]]
        return own, int(self.pairs.tgt_lengths[indices].sum()), len(indices)

    def lower_micro_batches(self, positions: int) -> bool:
        """Lower the maximum number of positions of a micro-batch, but not below the longest sequence.

        Args:
            positions: New maximum.

        Returns:
            Whether micro-batches have become smaller.
        """
        positions = max(positions, self.longest)
        if positions >= self.micro_batch_positions:
            return False
        self.micro_batch_positions = self.lowered_to = positions
        return True

    def largest_micro_batches(self) -> list[BatchT]:
        """Return the micro-batches of the heaviest step, to fail early if they do not fit."""
        return [self.batch(part, None) for part in self._split(self.heaviest_step())]

    def sampled_parts(self, steps: int) -> list[np.ndarray]:
        """Return the sequences (B,) of each micro-batch of some training steps from the first two epochs."""
        sample = np.unique(np.linspace(0, 2 * len(self) - 1, steps).astype(int)).tolist()
        return [part for step in sample for part in self._split(self.sequences_of(step))]

    def sampled_shapes(self, steps: int) -> list[tuple[int, int, int]]:
        """Return the shapes of the micro-batches of some training steps from the first two epochs."""
        return self.shapes_of(self.sampled_parts(steps))

    def shapes_of(self, parts: Sequence[np.ndarray]) -> list[tuple[int, int, int]]:
        """Return the shapes of micro-batches, given the sequences (B,) of each."""
        sides = self.pairs.src_lengths, self.pairs.tgt_lengths
        source, target = ([int(lengths[part].max()) for part in parts] for lengths in sides)
        return list(zip(map(len, parts), source, target, strict=True))

    def _split(self, indices: np.ndarray) -> list[np.ndarray]:
        rows = self.micro_batch_positions // self.pairs.longest(indices)
        return np.array_split(indices, -(-len(indices) // rows))
