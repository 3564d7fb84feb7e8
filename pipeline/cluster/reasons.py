"""What Slurm's words mean, and what to do: why a job waits, or why sbatch takes none."""

import csv
import re
from functools import cache
from pathlib import Path
from typing import Literal

from pipeline.core.schema import Closed, validate

TABLE = Path(__file__).with_name("reasons.csv")


class Reason(Closed):
    """A row of reasons.csv.

    Attributes:
        words: pattern of Slurm's own words; the first row that is found in them counts.
        then: `waits` goes on by itself, `stuck` needs somebody, `never` starts as it was asked for.
        meaning, remedy: in words; {job} stands for its id. No remedy where there is nothing to do.
    """

    words: str
    then: Literal["waits", "stuck", "never"]
    meaning: str
    remedy: str

    def say(self, job: str) -> str:
        return self.meaning + (f": {self.remedy}" if self.remedy else "").format(job=job)


@cache
def reasons() -> tuple[Reason, ...]:
    with open(TABLE, encoding="utf-8", newline="") as file:
        return tuple(validate(Reason, row, str(TABLE)) for row in csv.DictReader(file))


def explain(words: str) -> Reason | None:
    """What state and reason of a waiting job, or the complaint of sbatch, mean; None where nobody knows."""
    return next((reason for reason in reasons() if re.search(reason.words, words, re.IGNORECASE)), None)
