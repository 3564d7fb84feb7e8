"""The training loop: updates composed, gradients accumulated, weights changed, and the run looked after in between."""

import hashlib
import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from pipeline.config import RunSpec
from pipeline.core.layout import SAMPLES_FILE
from pipeline.core.records.training import Machine, RollBack, SampleLine
from pipeline.data.batches.corpus_batches import AnyBatch, AnyTrainingBatches
from pipeline.models.flops import BatchShape
from pipeline.models.seq2seq import Seq2Seq
from pipeline.training.captured_steps import CapturedSteps
from pipeline.training.checkpoint import Checkpoints, load_weights
from pipeline.training.cost import CostCounter
from pipeline.training.distributed import Group
from pipeline.training.gradient_sums import GradientSums
from pipeline.training.guards import all_finite, diverged, out_of_memory_explained, skip_update
from pipeline.training.machine import autocast
from pipeline.training.optimiser import Optimiser
from pipeline.training.prefetch import Prefetcher
from pipeline.training.progress import JsonLines, Progress
from pipeline.training.run_flops import run_flops
from pipeline.training.signals import StopRequest
from pipeline.training.state import Sums, TrainingState
from pipeline.training.updates import Numbers, Update, not_finite
from pipeline.training.validation import Validation

log = logging.getLogger(__name__)
SAVING_SHARE = 0.01


def micro_seed(seed: int, step: int, index: int) -> int:
    """Seed of all random numbers of micro-batch `index` of update `step`: none has a state that must be stored."""
    return int.from_bytes(hashlib.blake2b(f"{seed} {step} {index}".encode(), digest_size=8).digest(), "little") >> 1


@dataclass
class Trainer:
    """Takes a run from `state` to its last update; `machine` is noted in checkpoints."""

    spec: RunSpec
    model: Seq2Seq
    optimiser: Optimiser
    batches: AnyTrainingBatches
    state: TrainingState
    group: Group
    device: torch.device
    checkpoints: Checkpoints
    validation: Validation
    progress: Progress
    cost: CostCounter
    stop: StopRequest
    machine: Machine
    save_every_s: float
    captured: CapturedSteps | None = None

    def __post_init__(self):
        self.samples = JsonLines(self.checkpoints.run_folder / SAMPLES_FILE)
        self.saved_at, self.saving_took_s, self.saved_step = time.monotonic(), 0.0, -1
        self.sums = GradientSums(self.optimiser.parameters, self.group.size)
        self.coming = Prefetcher(self.compose)
        self.told_at: int | None = None
        """The update in which all were told that one of them was asked to stop."""
        self.unread: tuple[int, Update, Numbers, float] | None = None
        """The update that is still being computed: its number, its numbers, and its learning rate."""
        self.reads_late = self.device.type == "cuda" or self.captured is not None

    def train(self) -> None:
        """Do all updates that are left.

        Raises:
            SystemExit: a signal asked to stop; a checkpoint is written.
            UserError: out of memory or disk, or it diverged twice: loss or gradient not finite ten times in a row, or a
                development loss that is not sane.
        """
        self.model.train()
        with self.checkpoints.in_background():
            self.do_all()
            self.end()

    def do_all(self) -> None:
        training, state = self.spec.training, self.state
        if state.step == 0:
            self.progress.monitor(0, self.model.monitors)  # what was drawn: the first update changes it
        for step, update in self.coming.steps(state.step, training.max_steps):
            if self.ended:
                break
            if self.asked_to_stop:
                self.settle()
                self.save()
                self.checkpoints.finish()
                raise SystemExit(self.stop.exit_code)
            numbers = self.do(step, update)
            fault = self.settle()  # the update before, on a GPU
            self.unread = step, update, numbers, self.optimiser.rate
            state.step = step + 1
            saving = self.saving_is_due()
            if fault or saving or self.is_interrupted or not self.reads_late:
                fault = self.settle() or fault
            if not fault and state.step % training.validate_every == 0:
                fault = self.validate()
            if fault:
                self.go_back(fault)
            if state.step % training.checkpoint_every == 0:
                self.keep()
            if fault or saving:
                self.save()

    def compose(self, step: int) -> Update:
        """Update `step`, ready to be copied to the device; called in a thread of its own, ahead of time."""
        parts: list[AnyBatch] = [*self.batches.micro_batches(step, self.group.rank, self.group.size)]
        flops = sum(self.flops(batch) for batch in parts)
        if self.captured:
            parts = [self.captured.fitted(batch) for batch in parts]
        elif self.device.type == "cuda":
            parts = [batch.pinned() for batch in parts]
        return Update(parts, *self.batches.step_size(step), flops)

    def do(self, step: int, update: Update) -> Numbers:
        """One update; where the device can decide by itself whether to leave it out, without waiting for it."""
        if self.captured:
            return self.replay(self.captured, step, update)
        numbers = self.accumulate(step, update)
        if self.reads_late:
            self.optimiser.update(step, self.state.annealings, skip=not_finite(numbers[0], numbers[-1]))
            return Numbers(numbers)
        read = Numbers(numbers)
        loss, *_, norm = read.values
        if math.isfinite(loss) and math.isfinite(norm):
            self.optimiser.update(step, self.state.annealings)
        else:
            self.optimiser.forget_gradients()
        return read

    def replay(self, captured: CapturedSteps, step: int, update: Update) -> Numbers:
        """Do a training step by CUDA graphs."""
        seeds = [micro_seed(self.spec.seed, step, number) for number in range(len(update.parts))]
        with out_of_memory_explained(self.spec.name, step, update.parts[0], self.spec.training):
            found = captured.run(step, self.state.annealings, update.parts, seeds, self.divisor(update))
        return Numbers(found, (update.flops, self.stop.signal is not None))

    def divisor(self, update: Update) -> int:
        """Return the number by which the summed loss of a step is divided."""
        return update.tokens if self.spec.training.loss_mean == "token" else update.sentences

    def settle(self) -> str | None:
        """Read the numbers of the last update but count it only now; what is wrong, if too many were left out."""
        if self.unread is None:
            return None
        (step, update, numbers, rate), self.unread = self.unread, None
        loss, nll, flops, stopping, norm = numbers.values
        sums, fault = Sums(loss, nll, update.tokens), None
        if math.isfinite(loss) and math.isfinite(norm):
            self.state.skipped_in_a_row = 0
            self.state.since_validation.add(sums)
        else:
            fault = skip_update(self.spec.name, self.state, step, update.parts)
        if stopping and self.told_at is None:
            self.told_at = step
        self.cost.count(sums.tokens, flops)
        self.progress.count(step + 1, sums, rate, norm, self.coming.waited_s)
        self.progress.monitor(step + 1, self.model.monitors)
        return fault

    @property
    def is_interrupted(self) -> bool:
        """Whether something comes between the last update and the next."""
        training, step = self.spec.training, self.state.step
        return step == training.max_steps or not all(
            step % every for every in (training.validate_every, training.checkpoint_every)
        )

    @property
    def asked_to_stop(self) -> bool:
        """Alone at once; among several after the same update, though one that saves reads its numbers earlier."""
        if self.group.size == 1:
            return self.stop.signal is not None
        return self.told_at is not None and self.state.step > self.told_at + self.reads_late

    def end(self) -> None:
        """Keep what a longer training goes on from, then measure and keep the weights that this one ends in.

        What a longer training would not do after this update is done after that.
        """
        training, step = self.spec.training, self.state.step
        if self.saved_step != step:
            self.save()
        if step % training.validate_every and (fault := self.validate()):
            self.go_back(fault)
        if step % training.checkpoint_every:
            self.keep()
        if self.group.is_first:
            self.checkpoints.finish()
            self.checkpoints.prune()

    def keep(self) -> None:
        """Keep the weights for averaging, and to go back to; the first process does, if they are some."""
        if self.group.is_first and all_finite(self.model.parameters()):
            self.checkpoints.save_weights(self.model, self.state.step, self.state.good_step)

    def go_back(self, fault: str) -> None:
        """Take the last good weights, with fresh moments, and go on with the updates that come: no update is repeated.

        So the data that led astray are passed over. Raises UserError when it was done before, or can't be.
        """
        state, good = self.state, self.state.good_step
        path = self.checkpoints.kept(good or 0)
        self.checkpoints.finish()
        if state.returned or not good or not path.exists() or self.ended:
            raise diverged(self.spec.name, state, fault, str(path) if good else "none yet")
        load_weights(self.model, path, self.checkpoints.key)
        self.optimiser.load_tensors({})
        if self.captured:
            self.captured.forget()
        state.returned, state.skipped_in_a_row = RollBack(at=state.step, to=good), 0
        log.warning("%s: %s: going back to %s, and on from update %d", self.spec.name, fault, path, state.step)

    def accumulate(self, step: int, update: Update) -> torch.Tensor:
        """The gradients of an update; returns, on the device, over all processes: summed loss, negative log-likelihood,
        operations, how many were asked to stop; and the gradients' norm."""
        totals: torch.Tensor | None = None
        divisor = self.divisor(update)
        for number, batch in enumerate(update.parts):
            torch.manual_seed(micro_seed(self.spec.seed, step, self.group.rank + self.group.size * number))
            if number == len(update.parts) - 1:
                self.sums.last_pass()
            added = self.backward(step, batch, divisor)
            totals = added if totals is None else totals + added
        self.sums.finish()
        norm = get_total_norm(self.optimiser.gradients())
        if self.spec.training.clip_norm is not None:
            clip_grads_with_norm_(self.optimiser.parameters, self.spec.training.clip_norm, norm)
        said = torch.tensor([update.flops, self.stop.signal is not None], dtype=torch.float64)
        if self.device.type == "cuda":
            said = said.pin_memory().to(self.device, non_blocking=True)
        local = torch.zeros(2, device=self.device) if totals is None else totals
        return torch.cat((self.group.add_up(torch.cat((local, said))), norm.reshape(1)))

    def backward(self, step: int, batch: AnyBatch, divisor: float) -> torch.Tensor:
        """Add a micro-batch's share to the gradients; returns its summed loss and negative log-likelihood, (2,)."""
        with out_of_memory_explained(self.spec.name, step, batch, self.spec.training):
            with autocast(self.device, self.spec):
                sums = self.model.loss(batch.to(self.device), self.spec.training.label_smoothing)
            sums.loss.backward(torch.full_like(sums.loss, 1 / divisor))
        return torch.stack([sums.loss.detach(), sums.nll])

    def try_largest(self) -> None:
        """Run the micro-batch that needs most memory, and no update: what does not fit fails now. Raises UserError.

        Statistics that a model keeps of its batches stay as they were: going on from a checkpoint tries it, too.
        """
        parts: Sequence[AnyBatch] = self.batches.largest_micro_batches()
        largest = max(parts, key=lambda batch: batch.tgt_out.numel() + math.prod(batch.src_shape))
        if self.captured:
            largest = self.captured.fitted(largest)
        moments = [torch.zeros_like(weight) for weight in self.optimiser.parameters for _ in range(2)]
        before = [(buffer, buffer.clone()) for buffer in self.model.buffers()]
        self.backward(self.state.step, largest, largest.num_tokens)
        self.optimiser.forget_gradients()
        for buffer, value in before:
            buffer.copy_(value)
        del moments

    def validate(self) -> str | None:
        """Perplexity of training and development data, and translations to look at; what is wrong, if anything is."""
        fit, dev = self.validation.on_training_data(self.model), self.validation.on_dev(self.model)
        if not self.state.is_sane(dev, self.validation.vocab_size):
            return f"the development loss is {dev.nll_per_token:.4g} nats after update {self.state.step}"
        self.state.good_step = self.state.kept_step(self.spec.training.checkpoint_every)
        is_best = self.state.record_validation(fit, dev)
        self.state.annealings = self.optimiser.schedule.annealings(self.state.annealings, is_best)
        if not self.group.is_first:
            return None
        self.progress.validated(self.state)
        for sample in self.validation.samples(self.model):
            self.samples.append(SampleLine.model_validate({"step": self.state.step, **sample}))
            for name, text in sample.items():
                log.info("  %-11s %s", name, text)
        return None

    def saving_is_due(self) -> bool:
        """Whether to write a checkpoint to go on from: beside every kept one, and after `save_every_s`.

        Of the time since the last one, copying and waiting for the writer take `SAVING_SHARE` at most.
        """
        since = time.monotonic() - self.saved_at
        wanted = self.state.step % self.spec.training.checkpoint_every == 0 or since > self.save_every_s
        return wanted and self.saving_took_s < SAVING_SHARE * since

    def save(self) -> None:
        """Write a checkpoint to go on from, if there is one; the first process does."""
        started = time.monotonic()
        if self.group.is_first and all_finite(self.model.parameters()):
            cost = self.cost.until(self.state.step)
            write_cost = partial(cost.write, self.cost.path)
            self.checkpoints.save_resume(self.model, self.optimiser, self.state, self.machine, write_cost)
        self.saved_at, self.saved_step = time.monotonic(), self.state.step
        self.saving_took_s = self.saved_at - started

    @property
    def ended(self) -> bool:
        """Whether no update is left: all are done, the schedule has come to its end, or nothing improves any more."""
        training, state = self.spec.training, self.state
        finished = self.optimiser.schedule.finished(state.annealings) or state.out_of_patience(training)
        return finished or state.step == training.max_steps

    def flops(self, batch: AnyBatch) -> float:
        (rows, src_len), tgt_len = batch.src_shape, batch.tgt_out.shape[1]
        vocab = self.validation.vocab_size
        return run_flops(self.spec, BatchShape(vocab, rows * src_len, rows * tgt_len, src_len, tgt_len))
