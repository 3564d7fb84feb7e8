"""The training loop: steps, validations, checkpoints, and rolling back after divergence."""

import logging
import math
import time
from dataclasses import dataclass
from functools import partial

from pipeline.core.layout import SAMPLES_FILE
from pipeline.core.records.training import Machine, RollBack, SampleLine
from pipeline.models.seq2seq import FrameModel
from pipeline.training.checkpoint import Checkpoints
from pipeline.training.cost import CostCounter
from pipeline.training.guards import all_finite, count_skipped_step, diverged, too_many_skipped
from pipeline.training.progress import JsonLines, Progress
from pipeline.training.state import Sums, TrainingState
from pipeline.training.step import AsyncScalars, Prefetcher, PreparedStep, StepRunner
from pipeline.training.tensor_file import load_weights
from pipeline.training.validation import Validation

log = logging.getLogger(__name__)
SAVING_SHARE = 0.01
"""Largest share of the time that training spends waiting for resume files."""


@dataclass
class Trainer:
    """Training of a run from `state` to its last step.

    Attributes:
        steps: Computes the training steps.
        machine: Recorded in checkpoints.
        save_every_s: Seconds between resume files, besides those that accompany checkpoints.
        vocabulary: Digest of the vocabulary, read at the start because the corpus may be gone at the end.
    """

    steps: StepRunner
    state: TrainingState
    checkpoints: Checkpoints
    validation: Validation
    progress: Progress
    cost: CostCounter
    machine: Machine
    save_every_s: float
    vocabulary: str

    def __post_init__(self):
        self.spec, self.model, self.optimiser = self.steps.spec, self.steps.model, self.steps.optimiser
        self.group, self.stop = self.steps.group, self.steps.stop
        self.samples = JsonLines(self.checkpoints.run_folder / SAMPLES_FILE)
        self.saved_at, self.saving_took_s, self.saved_step = time.monotonic(), 0.0, -1
        self.prefetcher = Prefetcher(self.steps.prepare)
        self.stop_step: int | None = None
        """The step whose summed results showed all processes that one of them was asked to stop."""
        self.pending_step: tuple[int, PreparedStep, AsyncScalars, float] | None = None
        """The step still being computed: its number, data, results and learning rate."""
        self.early_fault = too_many_skipped(self.state)
        """A fault that this process knows a step before it rolls back, because it saved or resumed then."""

    def warm_up(self) -> None:
        """Try the largest micro-batch, and note the size of smaller ones if memory runs out.

        Raises:
            UserError: Memory runs out with a single sequence.
        """
        self.steps.warm_up_largest_batch(self.state.step)
        if lowered_to := self.steps.batches.lowered_to:
            self.state.micro_batch = lowered_to
            self.validation.keep_fit_batches(self.steps.batches)

    def train(self) -> None:
        """Train until the last step.

        Raises:
            SystemExit: A signal asked to stop; a checkpoint is written.
            UserError: Memory or disk is full, or the training diverged twice. It diverges if the loss or gradient is
                not finite in ten steps in a row, or if the dev loss explodes.
        """
        self.model.train()
        with self.checkpoints.in_background():
            self._loop()
            self.end()

    def _loop(self) -> None:
        training, state = self.spec.training, self.state
        if state.step == 0:
            self.progress.monitor(0, self.model.monitors)  # initial values, before the first step changes them
        for step, prepared in self.prefetcher.steps(state.step, training.max_steps):
            if self.ended:
                break
            if self.asked_to_stop:
                self._flush_pending_step()
                self.save()
                self.checkpoints.finish()
                raise SystemExit(self.stop.exit_code)
            scalars = self.steps.run(step, prepared, state.annealings)
            fault = self._flush_pending_step() or self.early_fault  # with async_stats, of the previous step
            self.early_fault = None
            self.pending_step = step, prepared, scalars, self.optimiser.rate
            self.progress.monitor(step + 1, self.model.monitors)  # before the next step changes the values
            state.step = step + 1
            saving = self.saving_is_due()
            if fault or self.pauses_after_step or not self.steps.async_stats:
                fault = self._flush_pending_step() or fault
            elif saving:
                self.early_fault = self._flush_pending_step()  # acted on a step later, as without saving
            if not fault and state.step % training.validate_every == 0:
                fault = self.validate()
            if fault:
                self.roll_back(fault)
            if state.step % training.checkpoint_every == 0:
                self.keep()
            if fault or saving:
                self.save()

    def _flush_pending_step(self) -> str | None:
        """Wait for the results of the pending step and log them; return a fault if too many steps were skipped."""
        if self.pending_step is None:
            return None
        (step, prepared, scalars, rate), self.pending_step = self.pending_step, None
        loss, nll, flops, stopping, norm = scalars.values
        ends = prepared.sentences if isinstance(self.model, FrameModel) else 0  # which the loss of CTC leaves out
        sums, fault = Sums(loss, nll, prepared.tokens - ends), None
        is_finite = math.isfinite(loss) and math.isfinite(norm)
        if is_finite:
            self.state.skipped_in_a_row = 0
            self.state.since_validation.add(sums)
        else:
            sequences = self.steps.batches.sequences_of(step).tolist()
            fault = count_skipped_step(self.spec.name, self.state, step, prepared.micro_batches, sequences)
        if stopping and self.stop_step is None:
            self.stop_step = step
        self.cost.count(prepared.tokens, flops)
        self.progress.count(step + 1, sums, rate, norm if is_finite else None, self.prefetcher.waited_s)
        return fault

    @property
    def pauses_after_step(self) -> bool:
        """True if a validation, a checkpoint or the end follows the last step."""
        training, step = self.spec.training, self.state.step
        return step == training.max_steps or not all(
            step % every for every in (training.validate_every, training.checkpoint_every)
        )

    @property
    def asked_to_stop(self) -> bool:
        """True if it is time to stop: a single process stops at once, several stop after the same step.

        A process that saves reads the results of a step earlier than the others, and must not stop before them.
        """
        if self.group.size == 1:
            return self.stop.signal is not None
        return self.stop_step is not None and self.state.step > self.stop_step + self.steps.async_stats

    @property
    def ended(self) -> bool:
        """True if no step is left: all are done, the schedule has ended, or patience has run out."""
        training, state = self.spec.training, self.state
        finished = self.optimiser.schedule.finished(state.annealings) or state.out_of_patience(training)
        return finished or state.step == training.max_steps

    def end(self) -> None:
        """Save a resume file for a longer training, then validate and keep the final weights.

        The resume file comes first. A longer training resumes from it, and would not validate or keep weights at this
        step.
        """
        training, step = self.spec.training, self.state.step
        if self.saved_step != step:
            self.save()
        if step % training.validate_every and (fault := self.validate()):
            self.roll_back(fault)
        if step % training.checkpoint_every:
            self.keep()
        if self.group.is_first:
            self.checkpoints.finish()
            self.checkpoints.prune()

    def keep(self) -> None:
        """Keep the weights for averaging and rollback, if they are finite; only the first process writes."""
        if self.group.is_first and all_finite(self.model.parameters()):
            step, good = self.state.step, self.state.good_step
            self.steps.between_steps(lambda: self.checkpoints.save_weights(self.model, step, good))

    def roll_back(self, fault: str) -> None:
        """Load the last good weights, reset the optimiser, and continue with the next step.

        Steps are not repeated, so training skips the data that caused the divergence.

        Raises:
            UserError: The training has rolled back before, has no good weights, or has no step left.
        """
        state, good = self.state, self.state.good_step
        path = self.checkpoints.weights_path(good or 0)
        self.checkpoints.finish()
        # The first process has written them before it looks. The others wait for what it finds.
        found = self.group.is_first and path.exists()
        (is_there,) = self.group.total([float(found)], self.steps.device)
        if state.returned or not good or not is_there or self.ended:
            error = diverged(self.spec.name, state, fault, str(path) if good else "none yet")
            raise error
        load_weights(self.model, path, self.checkpoints.key)
        self.optimiser.load_tensors({})
        if self.steps.captured:
            self.steps.captured.forget()
        state.returned, state.skipped_in_a_row = RollBack(at=state.step, to=good), 0
        log.warning("%s: %s: rolling back to %s, continuing from step %d", self.spec.name, fault, path, state.step)

    def validate(self) -> str | None:
        """Measure perplexity on training and development data, and decode samples; return a fault or None."""
        self.group.share_buffers(self.model)  # each has statistics of its own batches; only the first one's are kept
        measures = self.validation.on_training_data, self.validation.on_dev
        fit, dev = (self.steps.between_steps(partial(measure, self.model)) for measure in measures)
        if not self.state.is_sane(dev, self.validation.vocab_size):
            return f"the development loss is {dev.nll_per_token:.4g} nats after step {self.state.step}"
        self.state.good_step = self.state.kept_step(self.spec.training.checkpoint_every)
        is_best = self.state.record_validation(fit, dev)
        self.state.annealings = self.optimiser.schedule.annealings(self.state.annealings, is_best)
        if not self.group.is_first:
            return None
        self.progress.validated(self.state)
        for sample in self.steps.between_steps(partial(self.validation.samples, self.model)):
            self.samples.append(SampleLine.model_validate({"step": self.state.step, **sample}))
            for name, text in sample.items():
                log.info("  %-11s %s", name, text)
        return None

    def saving_is_due(self) -> bool:
        """Return whether to write a resume file: with every checkpoint, and after `save_every_s`.

        It waits until the duration of the last save is below `SAVING_SHARE` of the time since then.
        """
        since = time.monotonic() - self.saved_at
        wanted = self.state.step % self.spec.training.checkpoint_every == 0 or since > self.save_every_s
        return wanted and self.saving_took_s < SAVING_SHARE * since

    def save(self) -> None:
        """Write a resume file, if the weights are finite; only the first process writes."""
        started = time.monotonic()
        if self.group.is_first and all_finite(self.model.parameters()):
            cost = self.cost.until(self.state.step)
            written = self.model, self.optimiser, self.state, self.machine, partial(cost.write, self.cost.path)
            self.steps.between_steps(partial(self.checkpoints.save_resume, *written))
        self.saved_at, self.saved_step = time.monotonic(), self.state.step
        self.saving_took_s = self.saved_at - started
