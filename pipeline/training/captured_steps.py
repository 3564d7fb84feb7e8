"""Training steps replayed as CUDA graphs, one for each shape of a batch.

A graph holds a whole step: forward, backward, gradient norm, clipping, and the optimiser, which skips the step if the
loss or the norm is not finite. If a step has several micro-batches, each is a graph that adds to the gradients, and
clipping and optimiser are one more graph.

Several processes always take that second form. Between the two kinds of graphs they sum gradients and results, eagerly.
So each process may pad to shapes of its own, record a graph when it needs one, or run a batch eagerly. All processes
call the same collectives in the same order, whatever each does before.

A graph reads the batch, the learning rates and the divisor of the loss from memory that is filled beforehand. Random
numbers are seeded before each replay, so that they equal those of an eager step. Every step is a replay, even the first
of its shape, and a dropped graph is recorded again. So an interrupted run ends in the same bytes.
"""

import contextlib
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pipeline.config import RunSpec
from pipeline.data.batches.corpus_batches import AnyBatch, AnyTrainingBatches
from pipeline.models.kernels.autocast import forget_casts
from pipeline.models.seq2seq import Seq2Seq
from pipeline.training.distributed import Group, SharedSums
from pipeline.training.graph_cache import CudaRecorder, GraphCache, Recorder, Replay, Shape, ShapeGrid
from pipeline.training.machine import autocast
from pipeline.training.optimiser import Optimiser

SAMPLED_STEPS = 256
"""Number of steps whose batch shapes determine the grid."""
Work = Callable[[AnyBatch], Tensor]


@dataclass
class CapturedWork:
    """A graph with the memory that it reads and writes.

    Attributes:
        replay: Runs the graph.
        batch: Input batch; None if the graph reads only gradients.
        out: Output.
        alive: Tensors that the graph reads; the reference keeps their memory if the model replaces them.
    """

    replay: Replay
    batch: AnyBatch | None
    out: Tensor
    alive: list[Tensor]

    def load(self, batch: AnyBatch) -> None:
        """Copy a packed batch of the same shape into the graph's input."""
        assert self.batch is not None and self.batch.buffer is not None and batch.buffer is not None
        self.batch.buffer.copy_(batch.buffer, non_blocking=True)


def not_finite(a: Tensor, b: Tensor) -> Tensor:
    """Return 1.0 if `a` or `b`, scalars on the device, is not finite, else 0.0, without waiting for it."""
    both = a + b
    return (both - both).ne(0).float()


class CapturedSteps:
    """Training steps by replayed graphs, or eagerly by the same operators if a graph cannot be recorded.

    The model is on the device, a GPU. The optimiser keeps its learning rates there from now on.
    """

    def __init__(
        self,
        spec: RunSpec,
        model: Seq2Seq,
        optimiser: Optimiser,
        group: Group,
        device: torch.device,
        grid: ShapeGrid,
        recorder: Recorder,
    ):
        self.spec, self.model, self.optimiser, self.device, self.grid = spec, model, optimiser, device, grid
        self.graphs = GraphCache[CapturedWork](recorder)
        self.scale = torch.ones((), device=device)
        """Factor of the gradient of the summed loss."""
        self.totals = torch.zeros(2, device=device)
        """Summed loss and negative log-likelihood of the micro-batches of a step so far, shape (2,)."""
        self.shared = SharedSums(optimiser.parameters, group, device) if group.size > 1 else None
        """Sums over the processes; None for one process."""
        self.held: dict[nn.Parameter, Tensor] = dict(self.shared.gradients) if self.shared else {}
        """Accumulated gradients, by parameter."""
        optimiser.hold_rates()

    def fit(self, shape: Shape) -> Shape:
        """Return the shape of the grid to which batches of a `shape` are padded."""
        rows, source, target = self.grid.fit(shape)
        if (most := self.model.max_positions) is not None:  # positions beyond it have no learned vector
            source, target = max(shape[1], min(source, most)), max(shape[2], min(target, most))
        return rows, source, target

    def fitted(self, batch: AnyBatch) -> AnyBatch:
        """Pad a batch to a shape of the grid, packed so that one copy brings it to the device."""
        fitted = batch.fitted_to(*self.fit((*batch.src_shape, batch.tgt_out.shape[1])))
        return fitted.packed(pin=self.device.type == "cuda")

    def run(
        self,
        step: int,
        annealings: int,
        micro_batches: Sequence[AnyBatch],
        seeds: Sequence[int],
        divisor: float,
        known: Sequence[float],
    ) -> Tensor:
        """Train on the micro-batches of a step.

        Args:
            step: Number of the step, from 0.
            annealings: How often the learning rate was lowered.
            micro_batches: Fitted micro-batches of this process; one of several processes may have none.
            seeds: Random seed of each.
            divisor: Number by which the summed loss is divided.
            known: FLOPs of this process, and 1 if it was asked to stop, else 0; only several processes need them.

        Returns:
            Summed loss, negative log-likelihood, of several processes also the sums of `known`, and gradient norm
            before clipping, shape (3,) or (5,). The next step may overwrite them.
        """
        forget_casts()  # made by a validation
        self.optimiser.set_rates(step, annealings)
        self.scale.fill_(1 / divisor)
        frozen = self.optimiser.schedule.frozen(step)
        if len(micro_batches) == 1 and not self.shared:
            return self._run(("step", frozen), micro_batches[0], seeds[0], lambda batch: self._single(batch, frozen))
        for batch, seed in zip(micro_batches, seeds, strict=True):
            self._run(("micro-batch",), batch, seed, self._accumulate)
        if self.shared:
            self.shared.exchange(self.totals, known)
        return self._run_finish(frozen)

    def forget(self) -> None:
        """Drop all graphs, because tensors that they read were replaced."""
        self.graphs.clear()

    def _run(self, kind: tuple[Hashable, ...], batch: AnyBatch, seed: int, work: Work) -> Tensor:
        """Run `work` on a batch by its graph, or eagerly if there is none."""
        captured = self.graphs.get((*kind, batch.signature), lambda: self._record(batch, work))
        torch.manual_seed(seed)
        if captured is None:
            return work(batch.to(self.device))
        captured.load(batch)
        captured.replay()
        return captured.out

    def _run_finish(self, frozen: bool) -> Tensor:
        """Take the optimiser step from the accumulated gradients, and reset them."""
        captured = self.graphs.get(("finish", frozen, len(self.held)), lambda: self._record_finish(frozen))
        if captured is None:
            return self._finish(frozen)
        captured.replay()
        return captured.out

    def _single(self, batch: AnyBatch, frozen: bool) -> Tensor:
        """Run a step of one micro-batch."""
        self.optimiser.zero_grad()
        totals = self._backward(batch)
        out = torch.cat((totals, self._step(totals[0], frozen)))
        self.optimiser.zero_grad()
        return out

    def _accumulate(self, batch: AnyBatch) -> Tensor:
        """Add a micro-batch to the held gradients and to the totals."""
        self._use_held()
        added = self._backward(batch)
        found = {parameter: parameter.grad for parameter in self.optimiser.parameters if parameter.grad is not None}
        self.held = found | self.held
        return self.totals.add_(added)

    def _finish(self, frozen: bool) -> Tensor:
        self._use_held()
        results = self.shared.results if self.shared else self.totals
        out = torch.cat((results, self._step(results[0], frozen)))
        torch._foreach_zero_([self.totals, *self.held.values()])
        return out

    def _use_held(self) -> None:
        for parameter in self.optimiser.parameters:
            parameter.grad = self.held.get(parameter)

    def _backward(self, batch: AnyBatch) -> Tensor:
        """Add a batch's gradients, and return its summed loss and negative log-likelihood, shape (2,)."""
        with autocast(self.device, self.spec):
            sums = self.model.loss(batch, self.spec.training.label_smoothing)
        (sums.loss * self.scale).backward()  # a gradient as argument would make torch import sympy
        return torch.stack([sums.loss.detach(), sums.nll])

    def _step(self, loss: Tensor, frozen: bool) -> Tensor:
        """Clip the gradients and step the optimiser, unless loss or norm is not finite; return the norm, shape (1,)."""
        norm = self.optimiser.clip()
        self.optimiser.apply(frozen, skip=not_finite(loss, norm))
        return norm.reshape(1)

    def _record(self, batch: AnyBatch, work: Work) -> CapturedWork:
        own = batch.to(self.device)
        with self._without_effect():
            self.optimiser.zero_grad()
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
            self._step(torch.full_like(self.totals[0], math.nan), frozen)
        return self._capture(lambda: self._finish(frozen), None)

    def _hold_gradients(self) -> None:
        """Allocate an accumulated gradient for each parameter that has a gradient now."""
        for parameter in self.optimiser.parameters:
            if parameter.grad is not None and parameter not in self.held:
                self.held[parameter] = torch.zeros_like(parameter)

    @contextlib.contextmanager
    def _without_effect(self) -> Iterator[None]:
        """Let the block load kernels, fill caches and create the optimiser state, but change no number.

        Gradients become NaN, so that the optimiser skips the step.
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
            self.optimiser.zero_grad()

    def _capture(self, work: Callable[[], Tensor], batch: AnyBatch | None) -> CapturedWork:
        found: list[Tensor] = []
        replay = self.graphs.recorder.record(lambda: found.append(work()))
        return CapturedWork(replay, batch, found[0], [*self.model.buffers()])


def captured_steps(
    spec: RunSpec, model: Seq2Seq, optimiser: Optimiser, batches: AnyTrainingBatches, group: Group, device: torch.device
) -> CapturedSteps | None:
    """Return the captured steps of a training on a GPU, None if its steps are eager."""
    if device.type != "cuda" or not spec.training.cuda_graphs:
        return None
    grid = ShapeGrid(batches.sampled_shapes(SAMPLED_STEPS))
    return CapturedSteps(spec, model, optimiser, group, device, grid, CudaRecorder(device))
