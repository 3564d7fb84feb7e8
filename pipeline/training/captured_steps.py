"""Training steps replayed as CUDA graphs, one for each shape of a batch.

A graph holds a whole step: forward, backward, gradient norm, clipping, and the optimiser, which leaves the weights
alone if the loss or the norm is not finite. If a step has several micro-batches, each is a graph that adds to the
gradients, and what follows them is one more.

A graph reads the batch, the learning rates and the divisor of the loss from memory that is filled before. Random
numbers are seeded before it, too, so that they are those of an eager step. Every step of a shape is a replay, also the
first, and a graph that was dropped is recorded again: the same bytes come out, however often a run is stopped.
"""

import contextlib
import logging
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from pipeline.config import RunSpec
from pipeline.data.batches.corpus_batches import AnyBatch, AnyTrainingBatches
from pipeline.data.batches.shape_grid import ShapeGrid
from pipeline.models.seq2seq import Seq2Seq
from pipeline.training.compiled_layers import CompiledLayers
from pipeline.training.distributed import Group
from pipeline.training.graph_cache import CudaRecorder, GraphCache, Recorder, Replay
from pipeline.training.machine import autocast
from pipeline.training.optimiser import Optimiser
from pipeline.training.updates import not_finite

log = logging.getLogger(__name__)
SAMPLED_STEPS = 256
"""Steps from whose shapes the grid is chosen."""
Work = Callable[[AnyBatch], Tensor]


@dataclass
class CapturedWork:
    """A graph with the memory that it reads and writes.

    Attributes:
        batch: What it reads; None if it reads gradients alone.
        out: What it writes.
        alive: Tensors that it reads, which the model may replace by others.
    """

    replay: Replay
    batch: AnyBatch | None
    out: Tensor
    alive: list[Tensor]

    def load(self, batch: AnyBatch) -> None:
        """Copy a packed batch of the same shape into the graph's own."""
        assert self.batch is not None and self.batch.buffer is not None and batch.buffer is not None
        self.batch.buffer.copy_(batch.buffer, non_blocking=True)


class CapturedSteps:
    """Trains a model by replayed graphs, and eagerly by the same operators where nothing can be recorded."""

    def __init__(
        self,
        spec: RunSpec,
        model: Seq2Seq,
        optimiser: Optimiser,
        device: torch.device,
        grid: ShapeGrid,
        recorder: Recorder,
        compiled: CompiledLayers | None = None,
    ):
        self.spec, self.model, self.optimiser, self.device, self.grid = spec, model, optimiser, device, grid
        self.graphs, self.compiled = GraphCache[CapturedWork](recorder), compiled
        self.scale = torch.ones((), device=device)
        """What the gradient of the summed loss is multiplied by."""
        self.totals = torch.zeros(2, device=device)
        """Summed loss and negative log-likelihood of the micro-batches of a step so far."""
        self.held: dict[nn.Parameter, Tensor] = {}
        """Gradients to which micro-batches add, by parameter."""
        optimiser.hold_rates()

    def fitted(self, batch: AnyBatch) -> AnyBatch:
        """Pad a batch to a shape of the grid, packed so that one copy brings it to the device."""
        fitted = batch.fitted_to(*self.grid.fit((*batch.src_shape, batch.tgt_out.shape[1])))
        return fitted.packed(pin=self.device.type == "cuda")

    def run(
        self, step: int, annealings: int, parts: Sequence[AnyBatch], seeds: Sequence[int], divisor: float
    ) -> Tensor:
        """Train on the micro-batches of a step.

        Args:
            parts: Fitted micro-batches, at least one.
            seeds: Seed of the random numbers of each.
            divisor: Number by which the summed loss is divided.

        Returns:
            Summed loss, negative log-likelihood, and gradient norm before clipping; the next step may overwrite them.
        """
        self.optimiser.set_rates(step, annealings)
        self.scale.fill_(1 / divisor)
        frozen = self.optimiser.schedule.frozen(step)
        if len(parts) == 1:
            return self._done(("step", frozen), parts[0], seeds[0], lambda batch: self._whole(batch, frozen))
        for batch, seed in zip(parts, seeds, strict=True):
            self._done(("micro-batch",), batch, seed, self._accumulate)
        return self._finished(frozen)

    def forget(self) -> None:
        """Drop all graphs, as tensors that they read are replaced by others."""
        self.graphs.clear()

    def _done(self, kind: tuple[Hashable, ...], batch: AnyBatch, seed: int, work: Work) -> Tensor:
        """Do `work` on a batch by its graph, or eagerly if there is none."""
        captured = self.graphs.get((*kind, batch.signature), lambda: self._record(batch, work))
        torch.manual_seed(seed)
        if captured is None:
            return work(batch.to(self.device))
        captured.load(batch)
        captured.replay()
        return captured.out

    def _finished(self, frozen: bool) -> Tensor:
        """Take the step along the gradients that were added up, and begin anew."""
        captured = self.graphs.get(("finish", frozen, len(self.held)), lambda: self._record_finish(frozen))
        if captured is None:
            return self._finish(frozen)
        captured.replay()
        return captured.out

    def _whole(self, batch: AnyBatch, frozen: bool) -> Tensor:
        """Do a step of one micro-batch."""
        self.optimiser.forget_gradients()
        totals = self._backward(batch)
        out = torch.cat((totals, self._move(totals, frozen)))
        self.optimiser.forget_gradients()
        return out

    def _accumulate(self, batch: AnyBatch) -> Tensor:
        """Add what a micro-batch gives to the gradients that are held, and to the totals."""
        self._use_held()
        added = self._backward(batch)
        found = {parameter: parameter.grad for parameter in self.optimiser.parameters if parameter.grad is not None}
        self.held = found | self.held
        return self.totals.add_(added)

    def _finish(self, frozen: bool) -> Tensor:
        self._use_held()
        out = torch.cat((self.totals, self._move(self.totals, frozen)))
        torch._foreach_zero_([self.totals, *self.held.values()])
        return out

    def _use_held(self) -> None:
        for parameter in self.optimiser.parameters:
            parameter.grad = self.held.get(parameter)

    def _backward(self, batch: AnyBatch) -> Tensor:
        """Add a batch's share to the gradients; returns its summed loss and negative log-likelihood, (2,)."""
        with autocast(self.device, self.spec), self.compiled.used() if self.compiled else contextlib.nullcontext():
            sums = self.model.loss(batch, self.spec.training.label_smoothing)
        sums.loss.backward(self.scale)
        return torch.stack([sums.loss.detach(), sums.nll])

    def _move(self, totals: Tensor, frozen: bool) -> Tensor:
        """Clip the gradients and move the weights, unless a number is not finite; returns the norm, (1,)."""
        norm = get_total_norm(self.optimiser.gradients())
        if self.spec.training.clip_norm is not None:
            clip_grads_with_norm_(self.optimiser.parameters, self.spec.training.clip_norm, norm)
        self.optimiser.apply(frozen, skip=not_finite(totals[0], norm))
        return norm.reshape(1)

    def _record(self, batch: AnyBatch, work: Work) -> CapturedWork:
        own = batch.to(self.device)
        with self._without_effect():
            self.optimiser.forget_gradients()
            if work == self._accumulate:
                self._backward(own)
                self._hold_gradients()
            else:
                work(own)
        return self._capture(lambda: work(own), own)

    def _record_finish(self, frozen: bool) -> CapturedWork:
        with self._without_effect():
            for parameter in self.optimiser.parameters:
                parameter.grad = torch.full_like(parameter, math.nan) if parameter in self.held else None
            self._move(torch.full_like(self.totals, math.nan), frozen)
        return self._capture(lambda: self._finish(frozen), None)

    def _hold_gradients(self) -> None:
        """Hold a gradient for each parameter that has one now."""
        for parameter in self.optimiser.parameters:
            if parameter.grad is not None and parameter not in self.held:
                self.held[parameter] = torch.zeros_like(parameter)

    @contextlib.contextmanager
    def _without_effect(self) -> Iterator[None]:
        """Let work load its kernels, fill its caches and make the optimiser's state, but change no number.

        Gradients become NaN, so that the optimiser leaves the weights alone.
        """
        changed = [*self.model.buffers(), *self.optimiser.branch_weights, self.scale, self.totals]
        before = [tensor.detach().clone() for tensor in changed]
        self.scale.fill_(math.nan)
        try:
            yield
        finally:
            with torch.no_grad():
                for tensor, value in zip(changed, before, strict=True):
                    tensor.copy_(value)
            self.optimiser.forget_gradients()

    def _capture(self, work: Callable[[], Tensor], batch: AnyBatch | None) -> CapturedWork:
        found: list[Tensor] = []
        replay = self.graphs.recorder.record(lambda: found.append(work()))
        return CapturedWork(replay, batch, found[0], [*self.model.buffers()])


def captured_steps(
    spec: RunSpec, model: Seq2Seq, optimiser: Optimiser, batches: AnyTrainingBatches, group: Group, device: torch.device
) -> CapturedSteps | None:
    """Return what captures the steps of a training as CUDA graphs; None if they are done eagerly."""
    if device.type != "cuda" or not spec.training.cuda_graphs:
        return None
    if group.size > 1:
        log.info("steps are not captured as CUDA graphs, as %d processes train the model", group.size)
        return None
    grid = ShapeGrid(batches.sampled_shapes(SAMPLED_STEPS))
    return CapturedSteps(spec, model, optimiser, device, grid, CudaRecorder(device))
