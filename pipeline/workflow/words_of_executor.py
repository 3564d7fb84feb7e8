"""What a cluster says of a stage that could not: that its job was refused, or was ended for memory or time."""

import contextlib
import logging
import time
from pathlib import Path

from pipeline.workflow.failures import said_by

WHERE_IT_STANDS = ("For further error details", "\n    sbatch call")
"""Begin of what Snakemake and its executor add to each of these messages."""


class WordsOfExecutor(logging.Handler):
    """Of Snakemake's log: takes what an executor said over into the log of the stage, unless this try left a reason."""

    def __init__(self) -> None:
        super().__init__()
        self.since = time.time()
        self.failed_logs: list[Path] = []
        """Of every job that failed."""

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(getattr(record, "event", None), "value", None) != "job_error":
            return
        told = getattr(record, "rule_msg", None) or ""
        for added in WHERE_IT_STANDS:
            told = told.partition(added)[0]
        own = [log for log in map(Path, getattr(record, "log", None) or ()) if ".snakemake" not in log.parts]
        self.failed_logs += own
        with contextlib.suppress(OSError):  # the workflow goes on on a full disk, too
            for log in own if told.strip() else ():
                self.take_over(" ".join(told.split()), log)

    def take_over(self, told: str, log: Path) -> None:
        if log.exists() and log.stat().st_mtime >= self.since and said_by(log)[0]:
            return
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "a", encoding="utf-8") as end:
            end.write(f"error: {told}\n")
