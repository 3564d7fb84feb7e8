"""State files of a job, shared by the job, its launchers and other jobs of the same run."""

from typing import Literal

from pydantic import ConfigDict, Field

from pipeline.core.records.record import Record


class Done(Record):
    """The fields of `done.json` that all jobs have; other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    key: str
    weights_digest: str | None = Field(default=None, description="Of a training, whose weights have to be there too")


class Failure(Record):
    """`failed.json`: the job failed, and another start would fail again."""

    key: str
    job: str
    node: str
    rank: int
    time: float = Field(description="UNIX seconds")
    error: str
    traceback: str | None = Field(description="None where the error is the user's to mend")


class Submission(Record):
    """`job.json`: the current or last job of a run."""

    key: str
    launcher: str
    job: str | None = Field(description="None between the decision to submit and Slurm's answer")
    name: str
    time: float = Field(description="UNIX seconds")
    code: str = Field(description="Digest of the package")


class StartLine(Record):
    """A line of `starts.jsonl`: a start or stop of the process that works on the run."""

    event: Literal["start", "stop"]
    time: float = Field(description="UNIX seconds")
    job: str
    restart: int
    node: str
    pid: int
    checkpoint: int | None = Field(default=None, description="Of a start: step of the newest checkpoint, 0 = none")
    outcome: str | None = Field(default=None, description="Of a stop")


class UnfitNode(Record):
    """`unfit-nodes/NODE.json`: a node that failed its check."""

    node: str
    reason: str
    job: str
    time: float = Field(description="UNIX seconds")


class Claim(Record):
    """`owner.json`: the process that works on a run."""

    host: str
    pid: int
    job: str
    time: float = Field(description="UNIX seconds")
    token: str


class Command(Record):
    """`command.json`: the stage to run in this folder."""

    key: str
    arguments: list[str]
    outputs: list[str]


class QueueSnapshot(Record):
    """The last answer of Slurm about the jobs of a user."""

    asked: float = Field(description="When Slurm was last asked; seconds of the machine's monotonic clock")
    taken: float = Field(description="When it last answered; the same")
    interval: float = Field(description="Seconds to the next")
    jobs: list[list[str]] = Field(description="(job, state, reason, nodes, name)")
