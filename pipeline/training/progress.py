"""What a training shows of itself: a line every few seconds, and the same numbers in `progress.jsonl` and, if wanted,
for TensorBoard."""

import json
import logging
import time
from collections.abc import Callable
from pathlib import Path

from pipeline.core.errors import UserError
from pipeline.core.files import append_line, atomic_write, complete_lines
from pipeline.core.layout import PROGRESS_FILE
from pipeline.core.records.record import Record
from pipeline.core.records.training import AnyProgress, MonitorLine, ProgressLine, ValidationLine
from pipeline.training.event_file import EventFile
from pipeline.training.state import Sums, TrainingState

log = logging.getLogger(__name__)
LINE_EVERY_S = 5.0
MONITORED = 200


class JsonLines:
    """A file of one record a line, each with the `step` it was written at."""

    def __init__(self, path: Path):
        self.path = Path(path)

    def append(self, record: Record) -> None:
        """Raises UserError where the system can't write it."""
        append_line(self.path, record.line().encode())

    def rewind(self, step: int) -> None:
        """Forget what was written after `step` updates, or only in part: training goes on from there, or begins anew.

        Raises:
            UserError: a line before the last is faulty.
        """
        if not self.path.exists():
            return
        lines = enumerate(complete_lines(self.path), start=1)
        kept = [line for number, line in lines if step and step_of(line, f"{self.path}: line {number}") <= step]
        with atomic_write(self.path, "wb") as handle:
            handle.writelines(line + b"\n" for line in kept)


def step_of(line: bytes, where: str) -> int:
    """The `step` of a JSON line. Raises UserError when the line is faulty."""
    try:
        return json.loads(line)["step"]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{where}: not a JSON record with a `step` ({error}); mend or remove the line") from error


class Progress:
    """Counts updates and tells of them. Only the first process of a group should have one that is not `silent`."""

    def __init__(
        self, name: str, run_folder: Path, first: int, end: int, silent: bool = False, tensorboard: bool = False
    ):
        self.name, self.first, self.end, self.silent = name, first, end, silent
        self.lines = JsonLines(Path(run_folder) / PROGRESS_FILE)
        self.events = EventFile(run_folder, first) if tensorboard and not silent else None
        self.started = self.line_at = time.perf_counter()
        self.sums, self.waited_s, self.reported = Sums(), 0.0, False
        if not silent:
            self.lines.rewind(first)

    def count(self, step: int, sums: Sums, lr: float, gradient_norm: float, waited_s: float) -> None:
        """Note the update that made it `step`; tells of it when the last line is long enough ago.

        Args:
            waited_s: seconds spent waiting for batches, since the start.
        """
        self.sums.add(sums)
        now = time.perf_counter()
        if self.silent or (self.reported and now - self.line_at < LINE_EVERY_S and step < self.end):
            return
        seconds = now - self.line_at
        per_step = (now - self.started) / (step - self.first)
        record = ProgressLine(
            step=step,
            max_steps=self.end,
            **dict(self.sums.per_token()),
            lr=lr,
            gradient_norm=gradient_norm,
            tokens_per_s=self.sums.tokens / seconds,
            loader_share=(waited_s - self.waited_s) / seconds,
            seconds_left=per_step * (self.end - step),
        )
        log.info(progress_line(self.name, record))
        self.note(record)
        self.sums, self.waited_s, self.line_at, self.reported = Sums(), waited_s, now, True

    def validated(self, state: TrainingState) -> None:
        """Tell of a validation: `train` is the mean of the updates since the one before, `fit` is without dropout."""
        assert state.train and state.fit and state.dev
        log.info(
            "%s  step %d  dev perplexity %.2f (%.3f nats per symbol), train %.2f",
            *(self.name, state.step, state.dev.perplexity, state.dev.nll_per_token, state.fit.perplexity),
        )
        self.note(ValidationLine(step=state.step, train=state.train, fit=state.fit, dev=state.dev))

    def monitor(self, step: int, read: Callable[[], dict[str, list[float]]]) -> None:
        """Note what the model wants followed, `MONITORED` times a training; into the file alone."""
        due = step % max(1, self.end // MONITORED) == 0 or step == self.end
        if due and not self.silent and (values := read()):
            self.note(MonitorLine(step=step, values=values))

    def note(self, record: AnyProgress) -> None:
        self.lines.append(record)
        if self.events:
            self.events.add(record)


def progress_line(name: str, record: ProgressLine) -> str:
    """One line for people, from the record that goes into the file."""
    return (
        f"{name}  step {record.step}/{record.max_steps}  loss {record.loss_per_token:.3f}  "
        f"ppl {record.perplexity:.2f}  lr {record.lr:.2e}  {record.tokens_per_s / 1000:.1f}k tok/s  "
        f"waited {100 * record.loader_share:.0f} %  {clock(record.seconds_left)} left"
    )


def clock(seconds: float) -> str:
    """0:32, 12:05 or 3:04:09."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
