"""What a training tells of itself, also as an event file of TensorBoard (`training.tensorboard`)."""

import time
from pathlib import Path
from typing import Any

from pipeline.core.errors import UserError
from pipeline.core.layout import EVENTS
from pipeline.core.records.training import AnyProgress, MonitorLine, ProgressLine, ValidationLine


class EventFile:
    """Takes what `progress.jsonl` takes, each start in a file of its own; TensorBoard passes over what an earlier start
    wrote after `step` updates.

    Raises:
        UserError: the package that writes such files is not installed.
    """

    def __init__(self, run_folder: Path, step: int):
        try:
            from tensorboardX import event_file_writer, proto  # an extra
        except ImportError as error:
            raise UserError("tensorboard needs tensorboardX: `pip install '.[tensorboard]'`, or turn it off") from error
        self.made, folder = proto, run_folder / EVENTS
        folder.mkdir(exist_ok=True)
        # not its SummaryWriter, whose thread lags behind and loses what a kill finds in its queue
        self.writer = event_file_writer.EventsWriter(str(folder / "events"), f".{step:09}")
        started = proto.event_pb2.SessionLog(status=proto.event_pb2.SessionLog.START)
        self.write(step + 1 if step else 0, session_log=started)  # begun anew: nothing of before is left

    def add(self, record: AnyProgress) -> None:
        part = self.made.summary_pb2.Summary
        values = [part.Value(tag=name, simple_value=value) for name, value in scalars(record).items()]
        self.write(record.step, summary=part(value=values))

    def write(self, step: int, **content: Any) -> None:
        self.writer.write_event(self.made.event_pb2.Event(step=step, wall_time=time.time(), **content))
        self.writer.flush()


def scalars(record: AnyProgress) -> dict[str, float]:
    """Numbers of a record, by the names under which TensorBoard has them."""
    match record:
        case ProgressLine():
            left_out = {"event", "step", "max_steps", "seconds_left"}
            return {f"updates/{name}": value for name, value in record.model_dump(exclude=left_out).items()}
        case ValidationLine():
            losses = {"dev": record.dev} | ({"fit": record.fit} if record.fit else {})
            return {f"{name}/nll_per_token": loss.nll_per_token for name, loss in losses.items()}
        case MonitorLine():
            return {f"{name}/{at}": one for name, values in record.values.items() for at, one in enumerate(values)}
    raise TypeError(f"no numbers of {record!r}")
