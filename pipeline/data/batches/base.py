"""What the splits of all encoded corpora have in common, and their batches, be they text, speech or trees."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from pipeline.core.errors import UserError
from pipeline.core.symbols import BOS, EOS, PAD
from pipeline.data.store.sequence_store import TokenStore

ALIGNED = 16
"""Bytes of which the begin of a tensor in memory is a multiple."""


@dataclass(frozen=True)
class Batch:
    """B sequences; of the targets tgt_in (B, T) = BOS + y and tgt_out (B, T) = y + EOS, padded with PAD."""

    known: ClassVar[tuple[str, ...]] = ("real_targets",)
    """What is found out on the host and goes along to a device, which nobody then has to wait for."""
    known_on_grid: ClassVar[tuple[str, ...]] = ("on_grid", "num_tokens")
    """The same for a batch on the grid, whose tensors depend on its shape alone."""

    @cached_property
    def on_grid(self) -> bool:
        """Whether rows and positions were added to reach a shape of the grid (`fitted_to`)."""
        return False

    @cached_property
    def real_targets(self) -> Tensor:
        """(N,) int64: places of the targets in the flattened tgt_out, padding not among them."""
        return (vars(self)["tgt_out"].flatten() != PAD).nonzero().squeeze(1)

    @property
    def padded(self) -> bool | None:
        """Whether the source is, where that is known without asking a device."""
        return None

    @cached_property
    def num_tokens(self) -> int:
        """Target positions that are predicted, EOS included, padding not."""
        return len(self.real_targets)

    @property
    def buffer(self) -> Tensor | None:
        """The bytes of all tensors, if they are `packed` or a copy of what is."""
        return vars(self).get("_buffer")

    def to(self, device: torch.device | str) -> Self:
        buffer = self.buffer
        if buffer is None:
            return self._each(lambda part: part.to(device, non_blocking=True))
        moved = buffer.to(device, non_blocking=True)
        return self._in(moved, lambda part: piece(moved, int(part.storage_offset()) * part.itemsize, part))

    def pinned(self) -> Self:
        """In one piece of memory, which a GPU copies while the host goes on."""
        return self.packed(pin=True)

    def packed(self, pin: bool) -> Self:
        """Copy all tensors into one buffer; `pin`: in pinned memory."""
        parts = [part for part in self._parts().values() if isinstance(part, Tensor)]
        ends = np.cumsum([-(-part.nbytes // ALIGNED) * ALIGNED for part in parts]).tolist()
        buffer = torch.empty(ends[-1], dtype=torch.uint8)
        if pin:
            buffer = buffer.pin_memory()
        begins = {id(part): begin for part, begin in zip(parts, [0, *ends], strict=False)}
        return self._in(buffer, lambda part: piece(buffer, begins[id(part)], part).copy_(part))

    @property
    def signature(self) -> tuple[object, ...]:
        """Equal for batches that a device computes by the same kernels on memory of the same layout."""
        shapes = [tuple(part.shape) if isinstance(part, Tensor) else None for part in self._parts().values()]
        return type(self).__name__, self.padded, *shapes

    def fitted_to(self, rows: int, source: int, target: int) -> Self:
        """Pad to a shape of the grid. The loss stays as it is, and so do its gradients.

        A row that is added has no target. A position that is added holds PAD, or no sound.

        Args:
            rows: Sequences, at least as many as there are.
            source: Source positions, at least as many as there are; of text alone they do not matter.
            target: Target positions, likewise.
        """
        fitted = self._fitted(rows, source, target)
        vars(fitted).update(on_grid=True, num_tokens=self.num_tokens)
        return fitted

    def _fitted(self, rows: int, source: int, target: int) -> Self:
        raise NotImplementedError

    def _in(self, buffer: Tensor, change: Callable[[Tensor], Tensor]) -> Self:
        changed = self._each(change)
        vars(changed)["_buffer"] = buffer
        return changed

    def _parts(self) -> dict[str, Any]:
        known = self.known_on_grid if self.on_grid else self.known
        return {name: getattr(self, name) for name in (*(field.name for field in fields(self)), *known)}

    def _each(self, change: Callable[[Tensor], Tensor]) -> Self:
        parts = {k: change(part) if isinstance(part, Tensor) else part for k, part in self._parts().items()}
        changed = replace(self, **{field.name: parts.pop(field.name) for field in fields(self)})
        vars(changed).update(parts)
        return changed


def enlarged(x: Tensor, *shape: int, value: float = PAD) -> Tensor:
    """Copy `x` into the corner of a tensor of `shape` that holds `value` elsewhere."""
    out = x.new_full(shape, value)
    out[tuple(slice(length) for length in x.shape)] = x
    return out


def piece(buffer: Tensor, begin: int, like: Tensor) -> Tensor:
    """The bytes of a buffer from `begin` on, as a tensor of the type and shape of another."""
    return buffer[begin : begin + like.nbytes].view(like.dtype).view(like.shape)


class EncodedSplit(ABC):
    """The target side of one split of an encoded corpus.

    Attributes:
        tgt_lengths: (sequences,) count EOS.
        src_lengths: (sequences,) of the source side, or, where there is none, of the target side.
    """

    def __init__(self, corpus_folder: Path, split: str):
        self.folder = Path(corpus_folder)
        self.name = f"{corpus_folder}: split {split}"
        self.tgt = TokenStore(self.folder / f"{split}.tgt")
        self.src_lengths = self.tgt_lengths = self.tgt.lengths() + 1

    def targets(self, indices: np.ndarray) -> tuple[Tensor, Tensor]:
        """tgt_in and tgt_out of a batch."""
        tgt_in = self.tgt.padded(indices, first=BOS, last=None, pad=PAD)
        return torch.from_numpy(tgt_in), torch.from_numpy(self.tgt.padded(indices, first=None, last=EOS, pad=PAD))

    def longest(self, indices: np.ndarray) -> int:
        """Positions of the longest sequence, by which micro-batches are measured."""
        return int(self.src_lengths[indices].max())

    def check_budget(self, found: str, longest: int, key: str, budget: int | None, limit: str) -> None:
        """Raises UserError when a single sequence, `found`, is longer than an update or micro-batch may be."""
        if budget is not None and longest > budget:
            raise UserError(f"{self.name}: {found} but {key} is {budget}; raise {key} or lower {limit}")

    @abstractmethod
    def batch(self, indices: np.ndarray) -> Any:
        """The sequences `indices`."""


Split = TypeVar("Split", bound=EncodedSplit)
AnyBatch = TypeVar("AnyBatch", bound=Batch)


class EvalBatches(Generic[Split, AnyBatch]):
    """Every sequence of a split exactly once, in batches of like length, the longest first: (indices (B,), batch).

    A batch holds at most `batch_positions` on the source side, padding counted, but always one sequence.
    """

    def __init__(self, pairs: Split, batch_positions: int):
        self.pairs, self.batch_positions = pairs, batch_positions

    def __iter__(self) -> Iterator[tuple[np.ndarray, AnyBatch]]:
        for indices in length_order(self.pairs.src_lengths, self.pairs.tgt_lengths, self.batch_positions):
            yield indices, self.pairs.batch(indices)


def length_order(src_lengths: np.ndarray, tgt_lengths: np.ndarray, budget: int) -> Iterator[np.ndarray]:
    """Numbers of sequences, longest source first, in groups of at most `budget` padded source positions."""
    order = np.lexsort((tgt_lengths, src_lengths))[::-1]
    begin = 0
    while begin < len(order):
        rows = max(1, budget // int(src_lengths[order[begin]]))
        yield order[begin : begin + rows]
        begin += rows


class TrainingBatches(ABC, Generic[Split, AnyBatch]):
    """The updates of a training run; `len()` is their number in an epoch, the same in every epoch.

    Attributes:
        micro_batch_positions: of a micro-batch at most, padding counted; updates are the same whatever it is.
        sequences: of an epoch; left_out: those that are not trained on.
        padding: its share in the positions of an epoch.
    """

    pairs: Split
    micro_batch_positions: int
    sequences: int
    left_out: int
    padding: float

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def sequences_of(self, step: int) -> np.ndarray:
        """Numbers of the sequences in global update `step` (from 0), those of like length together."""

    @abstractmethod
    def heaviest_step(self) -> np.ndarray:
        """Those of the update that needs most memory."""

    def batch(self, indices: np.ndarray, step: int | None) -> AnyBatch:
        """The sequences `indices` as they are read in update `step`; None = undisturbed."""
        return self.pairs.batch(indices)

    def micro_batches(self, step: int, rank: int = 0, world_size: int = 1) -> list[AnyBatch]:
        """The micro-batches of global update `step` (from 0) that fall to process `rank` of `world_size`.

        Micro-batch i of the update goes to process i % world_size: the k-th returned is number rank + world_size * k.
        """
        return [self.batch(part, step) for part in self._split(self.sequences_of(step))[rank::world_size]]

    def step_size(self, step: int) -> tuple[int, int]:
        """Target positions, padding not counted, and sequences of global update `step`, over all processes."""
        indices = self.sequences_of(step)
        return int(self.pairs.tgt_lengths[indices].sum()), len(indices)

    def largest_micro_batches(self) -> list[AnyBatch]:
        """The micro-batches of the heaviest update, to fail early if they do not fit."""
        return [self.batch(part, None) for part in self._split(self.heaviest_step())]

    def sampled_shapes(self, steps: int) -> list[tuple[int, int, int]]:
        """Return (sequences, source positions, target positions) of the micro-batches of some steps of two epochs."""
        sample = np.unique(np.linspace(0, 2 * len(self) - 1, steps).astype(int)).tolist()
        parts = [part for step in sample for part in self._split(self.sequences_of(step))]
        sides = self.pairs.src_lengths, self.pairs.tgt_lengths
        source, target = ([int(lengths[part].max()) for part in parts] for lengths in sides)
        return list(zip(map(len, parts), source, target, strict=True))

    def _split(self, indices: np.ndarray) -> list[np.ndarray]:
        rows = self.micro_batch_positions // self.pairs.longest(indices)
        return np.array_split(indices, -(-len(indices) // rows))


def random_keys(seed: int, epoch: int, begin: int, end: int, stream: int) -> np.ndarray:
    """The random uint64 of places begin … end - 1, each a function of (seed, epoch, stream, place)."""
    block = begin // 4  # Philox yields four numbers per count
    key = np.array([seed, epoch], dtype=np.uint64)
    return np.random.Philox(key=key, counter=[block, stream, 0, 0]).random_raw(end - 4 * block)[begin - 4 * block :]
