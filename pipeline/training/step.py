"""Training steps: data prepared in a thread, passes run eagerly or as CUDA graphs, results copied asynchronously."""

import hashlib
import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from pipeline.config import RunSpec
from pipeline.data.batches.corpus_batches import AnyBatch, AnyTrainingBatches
from pipeline.models.seq2seq import Seq2Seq
from pipeline.models.settings import BatchShape
from pipeline.search.interface import AsyncCopy
from pipeline.training import captured_steps, distributed, guards, machine, ownership, specification
from pipeline.training.optimiser import Optimiser

log = logging.getLogger(__name__)
Prepared = TypeVar("Prepared")
Result = TypeVar("Result")


def micro_seed(seed: int, step: int, index: int) -> int:
    """Return the random seed of micro-batch `index`, counted over all processes, of `step` of a run with `seed`.

    Steps count from 0. Checkpoints then need no generator state.
    """
    return int.from_bytes(hashlib.blake2b(f"{seed} {step} {index}".encode(), digest_size=8).digest(), "little") >> 1


@dataclass(frozen=True)
class PreparedStep:
    """The data of a training step, ready to be copied to the device.

    Attributes:
        micro_batches: Those of this process.
        tokens: Target tokens over all processes.
        sentences: Sentence pairs over all processes.
        flops: FLOPs of this process.
    """

    micro_batches: list[AnyBatch]
    tokens: int
    sentences: int
    flops: float


class AsyncScalars:
    """Scalars that are copied from a device to the host asynchronously; reading them waits for the copy.

    Args:
        values: On the device; later work may overwrite them.
        known: Scalars that are on the host already; they are inserted before the last of `values`.
    """

    def __init__(self, values: Tensor, known: Sequence[float] = ()):
        self.copy, self.known = AsyncCopy(values), known

    @cached_property
    def values(self) -> list[float]:
        """The scalars, after the copy has ended."""
        *first, last = self.copy.wait().tolist()
        return [*first, *self.known, last]


class Prefetcher(Generic[Prepared]):
    """Thread that calls `prepare(step)` one step ahead; `waited_s` counts the seconds the caller had to wait."""

    def __init__(self, prepare: Callable[[int], Prepared]):
        self.prepare, self.waited_s = prepare, 0.0

    def steps(self, first: int, end: int) -> Iterator[tuple[int, Prepared]]:
        """Yield each step from `first` to `end` - 1 with its prepared data."""
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches") as pool:
            upcoming = pool.submit(self.prepare, first)
            for step in range(first, end):
                started = time.perf_counter()
                prepared = upcoming.result()
                self.waited_s += time.perf_counter() - started
                if step + 1 < end:
                    upcoming = pool.submit(self.prepare, step + 1)
                yield step, prepared


@dataclass
class StepRunner:
    """Forward and backward passes and optimiser steps, on this process's micro-batches.

    Attributes:
        vocab_size: Target vocabulary, for the FLOPs.
        captured: Replays steps as CUDA graphs; None computes them eagerly.
    """

    spec: RunSpec
    model: Seq2Seq
    optimiser: Optimiser
    batches: AnyTrainingBatches
    group: distributed.Group
    device: torch.device
    stop: ownership.StopRequest
    vocab_size: int
    captured: captured_steps.CapturedSteps | None = None

    def __post_init__(self):
        self.sums = distributed.GradientSums(self.optimiser.parameters, self.group.size)
        self.async_stats = self.device.type == "cuda" or self.captured is not None
        """True if the results of a step are read while the next one is computed."""

    def prepare(self, step: int) -> PreparedStep:
        """Prepare a step; called ahead of time in a separate thread."""
        own, tokens, sentences = self.batches.step_data(step, self.group.rank, self.group.size)
        micro_batches: list[AnyBatch] = [*own]
        flops = sum(self.flops(batch) for batch in micro_batches)
        if self.captured:
            micro_batches = [self.captured.fitted(batch) for batch in micro_batches]
        elif self.device.type == "cuda":
            micro_batches = [batch.packed(pin=True) for batch in micro_batches]
        return PreparedStep(micro_batches, tokens, sentences, flops)

    def run(self, step: int, prepared: PreparedStep, annealings: int) -> AsyncScalars:
        """Run a training step, and skip its optimiser step if the loss or gradient is not finite.

        With `async_stats` the device decides whether to skip, so that the host does not wait.

        Args:
            step: Number of the step, from 0.
            prepared: Its data.
            annealings: How often the learning rate was lowered.

        Returns:
            Summed loss, negative log-likelihood, FLOPs, number of processes asked to stop, and gradient norm.
        """
        if self.captured:
            return self.replay(self.captured, step, prepared, annealings)
        results = self.accumulate(step, prepared)
        if self.async_stats:
            self.optimiser.step(step, annealings, skip=captured_steps.not_finite(results[0], results[-1]))
            return AsyncScalars(results)
        scalars = AsyncScalars(results)
        loss, *_, norm = scalars.values
        if math.isfinite(loss) and math.isfinite(norm):
            self.optimiser.step(step, annealings)
        else:
            self.optimiser.zero_grad()
        return scalars

    def replay(
        self, captured: captured_steps.CapturedSteps, step: int, prepared: PreparedStep, annealings: int
    ) -> AsyncScalars:
        """Run a training step by replaying CUDA graphs, with micro-batches padded to their shapes, as `run`."""
        micro_batches, known = prepared.micro_batches, (prepared.flops, self.stop.signal is not None)
        seeds = [self.micro_seed(step, index) for index in range(len(micro_batches))]
        with self.out_of_memory_explained(step, micro_batches[:1]):
            results = captured.run(step, annealings, micro_batches, seeds, self.divisor(prepared), known)
        return AsyncScalars(results, known if self.group.size == 1 else ())

    def micro_seed(self, step: int, index: int) -> int:
        """Return the random seed of this process's micro-batch `index` of a step."""
        return micro_seed(self.spec.seed, step, self.group.rank + self.group.size * index)

    def divisor(self, prepared: PreparedStep) -> int:
        """Return the number by which the summed loss of a step is divided."""
        return prepared.tokens if self.spec.training.loss_mean == "token" else prepared.sentences

    def accumulate(self, step: int, prepared: PreparedStep) -> Tensor:
        """Compute the gradients of a step, summed over all processes and clipped; see `run`.

        Returns:
            On the device, over all processes, shape (5,): summed loss, negative log-likelihood, FLOPs, number of
            processes asked to stop; and the gradient norm before clipping.
        """
        totals: Tensor | None = None
        divisor = self.divisor(prepared)
        for index, batch in enumerate(prepared.micro_batches):
            torch.manual_seed(self.micro_seed(step, index))
            if index == len(prepared.micro_batches) - 1:
                self.sums.last_pass()
            added = self.backward(step, batch, divisor)
            totals = added if totals is None else totals + added
        self.sums.finish()
        norm = self.optimiser.clip()
        known = distributed.scalars_on(self.device, (prepared.flops, self.stop.signal is not None))
        local = torch.zeros(2, device=self.device) if totals is None else totals
        return torch.cat((self.group.add_up(torch.cat((local, known))), norm.reshape(1)))

    def backward(self, step: int, batch: AnyBatch, divisor: float) -> Tensor:
        """Add gradients of `batch` / `divisor` in `step`; return loss and negative log-likelihood, (2,)."""
        with self.out_of_memory_explained(step, [batch]):
            with machine.autocast(self.device, self.spec):
                sums = self.model.loss(batch.to(self.device), self.spec.training.label_smoothing)
            (sums.loss * (1 / divisor)).backward()  # a gradient as argument would make torch import sympy
        return torch.stack([sums.loss.detach(), sums.nll])

    def out_of_memory_explained(self, step: int, batches: Sequence[AnyBatch]) -> AbstractContextManager[None]:
        """Return `guards.out_of_memory_explained` for micro-batches of the present size."""
        positions = self.batches.micro_batch_positions
        return guards.out_of_memory_explained(guards.out_of_memory_in_step, self.spec, step, batches, positions)

    def between_steps(self, work: Callable[[], Result]) -> Result:
        """Return the result of `work`, which can be repeated; drop all CUDA graphs if they leave it no memory."""
        try:
            return work()
        except RuntimeError as error:
            if not (guards.is_out_of_memory(error) and self.captured and self.captured.graphs.graphs):
                raise
        log.info("%s: no memory between steps: dropping all CUDA graphs", self.spec.name)
        self.captured.forget()
        return work()

    def warm_up_largest_batch(self, step: int) -> None:
        """Run the passes of the micro-batches that need most memory, so that lack of memory shows at once.

        If memory runs out in any process, all halve their micro-batches and retry. The steps stay the same, and so do
        their gradients up to rounding and dropout.

        Raises:
            UserError: Memory runs out with a single sequence.
        """
        while self.group.total([float((fault := self._warm_up(step)) is not None)], self.device)[0]:
            before = self.batches.micro_batch_positions
            if not self.batches.lower_micro_batches(before // 2):
                error = guards.out_of_memory_with_one_sequence(self.spec, step, fault or "on another process")
                raise error
            log.warning(
                "%s: out of memory with micro-batches of %d positions; trying %d: a step keeps its size, in more "
                "micro-batches",
                *(self.spec.name, before, self.batches.micro_batch_positions),
            )
            if self.device.type == "cuda":  # the failed attempt does not count as its peak memory
                torch.cuda.reset_peak_memory_stats(self.device)
            if self.captured:  # its grid has shapes of the larger micro-batches
                self.captured = None  # frees its tensors before others take their place
                self.captured = captured_steps.captured_steps(
                    self.spec, self.model, self.optimiser, self.batches, self.group, self.device
                )

    def _warm_up(self, step: int) -> str | None:
        """Run the passes of the largest micro-batches, with placeholders of moments that the optimiser will create.

        Neither weights nor buffers (such as running statistics) change.

        Returns:
            The shape of the micro-batch for which memory runs out, else None.
        """
        batches = self.largest_batches()
        before = [(buffer, buffer.clone()) for buffer in self.model.buffers()]
        try:
            with self.out_of_memory_explained(step, batches[:1]):
                moments = self.optimiser.missing_states()
            while batches:
                self.backward(step, batches[0], batches[0].num_tokens)
                self.optimiser.zero_grad()
                del batches[0]
            del moments
        except guards.OutOfMemory:
            return guards.describe(batches[:1])
        finally:
            self.optimiser.zero_grad()
            for buffer, value in before:
                buffer.copy_(value)
        return None

    def largest_batches(self) -> list[AnyBatch]:
        """Return the micro-batches that may need most memory, padded as in a step.

        One is of the step with most attention weights. Of a sample, others have most of these, or most positions, when
        they are padded.
        """
        candidates: Sequence[AnyBatch] = self.batches.largest_micro_batches()
        largest = max(candidates, key=lambda batch: batch.tgt_out.numel() + math.prod(batch.src_shape))
        parts = self.batches.sampled_parts(captured_steps.SAMPLED_STEPS)
        shapes = self.batches.shapes_of(parts)
        rows, source, target = np.array([self.captured.fit(shape) for shape in shapes] if self.captured else shapes).T
        sizes = rows * np.maximum(source, target) ** 2, rows * (source + target)
        chosen = dict.fromkeys(int(size.argmax()) for size in sizes)
        found = [largest, *(self.batches.batch(parts[place], None) for place in chosen)]
        found = [self.captured.fitted(batch) for batch in found] if self.captured else found
        return [*{(*batch.src_shape, batch.tgt_out.shape[1]): batch for batch in found}.values()]

    def flops(self, batch: AnyBatch) -> float:
        """Return the FLOPs of forward and backward pass of a batch, padding included."""
        (rows, src_len), tgt_len = batch.src_shape, batch.tgt_out.shape[1]
        return specification.run_flops(
            self.spec, BatchShape(self.vocab_size, rows * src_len, rows * tgt_len, src_len, tgt_len)
        )
