"""What a cluster says of a stage that could not: that its job was refused, or was ended for memory or time."""

import logging
import time
from pathlib import Path

from reprise.status.failures import said_by

GENERAL = "For further error details"  # what Snakemake ends each of these messages with


class WordsOfExecutor(logging.Handler):
    """Of Snakemake's log: takes what an executor said over into the log of the stage, unless this try left a reason."""

    def __init__(self) -> None:
        super().__init__()
        self.since = time.time()

    def emit(self, record: logging.LogRecord) -> None:
        failed = getattr(getattr(record, "event", None), "value", None) == "job_error"
        told = (getattr(record, "rule_msg", None) or "").partition(GENERAL)[0].strip() if failed else ""
        for log in map(Path, getattr(record, "log", None) or ()) if told else ():
            if log.exists() and log.stat().st_mtime >= self.since and said_by(log)[0]:
                continue
            log.parent.mkdir(parents=True, exist_ok=True)
            with open(log, "a", encoding="utf-8") as end:
                end.write(f"error: {told.splitlines()[0]}\n")
