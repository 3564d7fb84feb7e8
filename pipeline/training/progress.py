"""Progress of a training: log lines, `progress.jsonl`, and TensorBoard event files."""

import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.core.errors import UserError
from pipeline.core.files import append_line, atomic_write, complete_lines
from pipeline.core.layout import EVENTS, PROGRESS_FILE
from pipeline.core.records import training as records
from pipeline.core.records.record import Record
from pipeline.training.state import Sums, TrainingState

log = logging.getLogger(__name__)
LINE_EVERY_S = 5.0
LEAST_LINES = 25
"""Progress lines of a training that takes a few seconds, so that its learning curve has enough points."""
MONITORED = 200
"""Number of times that a training records the values that its model monitors."""


class JsonLines:
    """A file with one record per line, each with the `step` at which it was written."""

    def __init__(self, path: Path):
        self.path = Path(path)

    def append(self, record: Record) -> None:
        """Append a record.

        Raises:
            UserError: The file cannot be written.
        """
        append_line(self.path, record.line().encode())

    def rewind(self, step: int, validate_every: int) -> None:
        """Remove what a training writes again when it resumes after `step`, and a partial last line.

        A validation between two multiples of `validate_every` ended a training. It followed the last resume file, and a
        longer training has none there. Step 0 removes all lines.

        Raises:
            UserError: A line before the last is faulty.
        """
        if not self.path.exists():
            return
        kept: list[bytes] = []
        for number, line in enumerate(complete_lines(self.path), start=1) if step else ():
            written_at, validated = step_of(line, f"{self.path}: line {number}")
            if written_at <= step and not (validated and written_at % validate_every):
                kept.append(line)
        with atomic_write(self.path, "wb") as handle:
            handle.writelines(line + b"\n" for line in kept)


def step_of(line: bytes, where: str) -> tuple[int, bool]:
    """Return the `step` of a JSON `line` at `where`, and whether it is of a validation, as samples are.

    Raises:
        UserError: The line is faulty.
    """
    try:
        content = json.loads(line)
        return content["step"], content.get("event", "validation") == "validation"
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{where}: not a JSON record with a `step` ({error}); fix or remove the line") from error


@dataclass
class Interval:
    """The steps since the last progress line.

    Attributes:
        sums: Loss of those that were not skipped.
        gradient_norm: Norm of the gradient of the last one of these.
        tokens: Target tokens of all steps.
        skipped: Number of skipped steps.
    """

    sums: Sums = field(default_factory=Sums)
    gradient_norm: float | None = None
    tokens: int = 0
    skipped: int = 0

    def add(self, sums: Sums, gradient_norm: float | None) -> None:
        """Add a step; a skipped one has no `gradient_norm`."""
        self.tokens += sums.tokens
        if gradient_norm is None:
            self.skipped += 1
        else:
            self.sums.add(sums)
            self.gradient_norm = gradient_norm

    def losses(self) -> dict[str, Any]:
        """Return the means per token by field of a progress line; None if all steps were skipped."""
        return dict(self.sums.per_token() if self.sums.tokens else dict.fromkeys(records.TrainingLoss.model_fields))


class Progress:
    """Counter of training steps that reports them; silent on all processes but the first.

    Args:
        name: Name of the run in log lines.
        run_folder: Folder of `progress.jsonl`.
        first: Steps done before this start.
        end: Steps of the whole training.
        silent: Report nothing.
        tensorboard: Write event files too.
    """

    def __init__(
        self, name: str, run_folder: Path, first: int, end: int, silent: bool = False, tensorboard: bool = False
    ):
        self.name, self.first, self.end, self.silent = name, first, end, silent
        self.lines = JsonLines(Path(run_folder) / PROGRESS_FILE)
        self.events = EventFile(run_folder, first) if tensorboard and not silent else None
        self.started = self.line_at = time.perf_counter()
        self.interval, self.waited_s, self.reported = Interval(), 0.0, False

    def count(self, step: int, sums: Sums, lr: float, gradient_norm: float | None, waited_s: float) -> None:
        """Count a training step, and report at a share of all steps and if the last report is `LINE_EVERY_S` ago.

        Args:
            step: Steps done, this one included.
            sums: Loss of this step.
            lr: Its learning rate.
            gradient_norm: Norm of its gradient before clipping; None if the step was skipped.
            waited_s: Seconds spent waiting for batches since the start.
        """
        self.interval.add(sums, gradient_norm)
        now = time.perf_counter()
        is_due = step % max(1, self.end // LEAST_LINES) == 0 or step == self.end or now - self.line_at >= LINE_EVERY_S
        if self.silent or (self.reported and not is_due):
            return
        seconds = now - self.line_at
        per_step = (now - self.started) / (step - self.first)
        record = records.ProgressLine(
            step=step,
            max_steps=self.end,
            **self.interval.losses(),
            lr=lr,
            gradient_norm=self.interval.gradient_norm,
            skipped=self.interval.skipped,
            tokens_per_s=self.interval.tokens / seconds,
            loader_share=(waited_s - self.waited_s) / seconds,
            seconds_left=per_step * (self.end - step),
        )
        log.info(progress_line(self.name, record))
        self.write(record)
        self.interval, self.waited_s, self.line_at, self.reported = Interval(), waited_s, now, True

    def validated(self, state: TrainingState) -> None:
        """Report a validation: `train` is the mean since the last validation, `fit` is measured without dropout."""
        assert state.fit and state.dev
        log.info(
            "%s  step %d  dev perplexity %.2f (%.3f nats per symbol), train %.2f",
            *(self.name, state.step, state.dev.perplexity, state.dev.nll_per_token, state.fit.perplexity),
        )
        self.write(records.ValidationLine(step=state.step, train=state.train, fit=state.fit, dev=state.dev))

    def monitor(self, step: int, read: Callable[[], dict[str, list[float]]]) -> None:
        """Write the values that a model monitors, `MONITORED` times per training, without a log line.

        Args:
            step: Steps done.
            read: Reads the monitored values from the device, by name.
        """
        due = step % max(1, self.end // MONITORED) == 0 or step == self.end
        if due and not self.silent and (values := read()):
            self.write(records.MonitorLine(step=step, values=values))

    def write(self, record: records.AnyProgress) -> None:
        """Append a record to all files."""
        self.lines.append(record)
        if self.events:
            self.events.add(record)


def progress_line(name: str, record: records.ProgressLine) -> str:
    """Return a progress record as a log line."""
    parts = [] if record.perplexity is None else [f"loss {record.loss_per_token:.3f}  ppl {record.perplexity:.2f}"]
    parts += [f"{record.skipped} skipped"] if record.skipped else []
    return (
        f"{name}  step {record.step}/{record.max_steps}  {'  '.join(parts)}  "
        f"lr {record.lr:.2e}  {record.tokens_per_s / 1000:.1f}k tok/s  "
        f"waited {100 * record.loader_share:.0f} %  {clock(record.seconds_left)} left"
    )


def clock(seconds: float) -> str:
    """Format a duration as 0:32, 12:05 or 3:04:09."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class EventFile:
    """TensorBoard event file with the numbers of `progress.jsonl` (`training.tensorboard`).

    Each start writes its own file. TensorBoard ignores what an earlier start wrote after `step`.

    Raises:
        UserError: The package that writes event files is not installed.
    """

    def __init__(self, run_folder: Path, step: int):
        try:
            from tensorboardX import event_file_writer, proto  # optional dependency
        except ImportError as error:
            raise UserError("no tensorboardX: `pip install -e '.[tensorboard]'`, or turn tensorboard off") from error
        self.proto, folder = proto, run_folder / EVENTS
        folder.mkdir(exist_ok=True)
        # Not its SummaryWriter, whose queue is lost when the process is killed.
        self.writer = event_file_writer.EventsWriter(str(folder / "events"), f".{step:09}")
        started = proto.event_pb2.SessionLog(status=proto.event_pb2.SessionLog.START)
        self.write(step + 1 if step else 0, session_log=started)  # TensorBoard drops earlier events from this step on

    def add(self, record: records.AnyProgress) -> None:
        """Write the numbers of a record."""
        summary = self.proto.summary_pb2.Summary
        values = [summary.Value(tag=name, simple_value=value) for name, value in scalars(record).items()]
        self.write(record.step, summary=summary(value=values))

    def write(self, step: int, **content: Any) -> None:
        """Write an event to disk."""
        self.writer.write_event(self.proto.event_pb2.Event(step=step, wall_time=time.time(), **content))
        self.writer.flush()


def scalars(record: records.AnyProgress) -> dict[str, float]:
    """Return the numbers of a record by their TensorBoard tags."""
    match record:
        case records.ProgressLine():
            left_out = {"event", "format", "step", "max_steps", "seconds_left"}
            found = record.model_dump(exclude=left_out, exclude_none=True)
            return {f"updates/{name}": value for name, value in found.items()}
        case records.ValidationLine():
            losses = {"dev": record.dev} | ({"fit": record.fit} if record.fit else {})
            return {f"{name}/nll_per_token": loss.nll_per_token for name, loss in losses.items()}
        case records.MonitorLine():
            return {f"{name}/{at}": value for name, values in record.values.items() for at, value in enumerate(values)}
