"""State that launchers and jobs share through the folder of a run, and the identity of this process.

    done.json               the job is done; the job writes it last
    state.jsonl             submissions, starts, stops, failures, unfit nodes, decodings (pipeline/core/records/jobs.py)
    checkpoints/step-N…     weights and resume files; N shows the progress between starts

The *key* of a run or job is a digest of its settings and inputs. docs/reference/files.md describes all state files.

A stage that runs as a job has a folder of its own, which records its command line. It is done when its outputs exist.
"""

import os
import time
from pathlib import Path

from pipeline.core.digests import noted_digest, sha256_json
from pipeline.core.errors import UserError
from pipeline.core.layout import DONE_FILE, STATE_FILE, WEIGHTS_FILE
from pipeline.core.records import jobs
from pipeline.core.schema import parse_json
from pipeline.outputs.plan import PlannedTraining
from pipeline.stages import perform
from pipeline.training.checkpoint_files import RESUME, WEIGHTS, numbered
from pipeline.training.specification import run_key

UNFIT_FOR_S = 24 * 3600  # a node is used again after a day, as it may have been repaired


def is_done(run: Path, key: str) -> bool:
    """Return whether `run` is done with this `key`, and its weights exist."""
    done = jobs.Done.read_if_valid(run / DONE_FILE)
    if done is None or done.key != key:
        return False
    return done.weights_digest is None or (run / WEIGHTS_FILE).exists()


def read_failure(run: Path, key: str | None = None) -> jobs.Failure | None:
    """Return the last failure of `run` with a `key`, None for any, unless it was started or retried since."""
    for event in reversed(jobs.read_events(run)):
        if isinstance(event, jobs.Retry) or (isinstance(event, jobs.StartLine) and event.event == "start"):
            return None
        if isinstance(event, jobs.Failure) and key in (None, event.key):
            return event
    return None


def record_failure(run: Path, key: str, error: str, trace: str | None) -> None:
    """Record that this process of `run` with a `key` failed with an `error`; no `trace` if the user has to fix it."""
    failure = jobs.Failure(key=key, job=job_name(), node=node_name(), rank=rank(), error=error, traceback=trace)
    jobs.record_event(run, failure)


def read_submission(run: Path) -> jobs.Submission | None:
    """Return the last submission; None if there is none."""
    return jobs.last_event(jobs.Submission, run)


def read_starts(run: Path) -> list[jobs.StartLine]:
    """Return the starts and stops of a run, oldest first."""
    return [event for event in jobs.read_events(run) if isinstance(event, jobs.StartLine)]


def record_unfit_node(run: Path, node: str, reason: str, job: str) -> None:
    """Record that Slurm's `node` failed its check for a `reason` that `job` of `run` found."""
    jobs.record_event(run, jobs.UnfitNode(node=node, reason=reason, job=job))


def unfit_nodes(run: Path) -> list[jobs.UnfitNode]:
    """Return the nodes that failed their check in the last 24 hours, each with its last check.

    A broken node may have a slow clock. So a check counts as no older than the submission before it, which has the time
    of the launcher's clock.
    """
    found: dict[str, jobs.UnfitNode] = {}
    submitted = 0.0
    for event in jobs.read_events(run):
        if isinstance(event, jobs.Submission):
            submitted = event.time
        elif isinstance(event, jobs.UnfitNode) and max(event.time, submitted) > time.time() - UNFIT_FOR_S:
            found[event.node] = event
    return list(found.values())


def newest_checkpoint(run: Path) -> int:
    """Return the step of the newest checkpoint, 0 before the first."""
    kinds = (numbered(run / "checkpoints", kind) for kind in (WEIGHTS, RESUME))
    return max((step for found in kinds for step, _ in found), default=0)


def rank() -> int:
    """Return the rank of this process."""
    return int(os.environ.get("RANK", "0"))


def world_size() -> int:
    """Return the number of processes of this job."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def job_name() -> str:
    """Return Slurm's job id, or the process id outside of Slurm."""
    return os.environ.get("SLURM_JOB_ID", str(os.getpid()))


def node_name() -> str:
    """Return Slurm's name of this node, as `sbatch --exclude` takes it."""
    return os.environ.get("SLURMD_NODENAME", os.uname().nodename)


def record_command(folder: Path, arguments: list[str], outputs: list[Path]) -> jobs.JobCommand:
    """Return a command of a `folder`, its `arguments` and `outputs`, which is recorded with the key of its job.

    `done.json` of another command, of changed inputs or of missing outputs is removed.
    """
    key = sha256_json([arguments, [input_state(each) for each in arguments if Path(each) not in outputs]])
    done = jobs.Done.read_if_valid(folder / DONE_FILE)
    if done and (done.key != key or not all(path.exists() for path in outputs)):
        (folder / DONE_FILE).unlink(missing_ok=True)
    command = jobs.JobCommand(key=key, arguments=arguments, outputs=[*map(str, outputs)])
    if jobs.last_event(jobs.JobCommand, folder) != command:
        jobs.record_event(folder, command)
    return command


def record_decodings(run: Path, planned: str) -> None:
    """Record the JSON of a `PlannedTraining`, what is `planned` at the end of the training of `run`, if it is new.

    Raises:
        UserError: It is not JSON of a `PlannedTraining`.
    """
    decodings = jobs.Decodings(
        planned=parse_json(PlannedTraining, planned, "--decodings").model_dump(exclude_defaults=True)
    )
    if jobs.last_event(jobs.Decodings, run) != decodings:
        jobs.record_event(run, decodings)


def input_state(argument: str) -> str | list[int] | None:
    """Return the recorded digest of a file that a command names, else its size and time; None if it is no file."""
    if not os.path.isfile(argument):  # Path.is_file raises OSError if the argument is too long for a name
        return None
    if digest := noted_digest(Path(argument)):  # Snakemake touches files, which changes their time
        return digest
    status = os.stat(argument)
    return [status.st_size, status.st_mtime_ns]


def perform_command(folder: Path) -> None:
    """Run the last command of a folder, and write `done.json`; called by the job.

    Raises:
        UserError: The stage failed, or did not write one of its outputs.
    """
    command = jobs.last_event(jobs.JobCommand, folder)
    if command is None:
        raise UserError(f"{folder}: {STATE_FILE} contains no `command` event; run the same command again")
    perform(command.arguments)
    for output in command.outputs:
        if not Path(output).exists():
            raise UserError(
                f"{' '.join(command.arguments[:1])}: ended without writing {output}; please report this bug"
            )
    jobs.Done(key=command.key).write(folder / DONE_FILE)


def job_key(folder: Path) -> str:
    """Return the key of a folder's job: a command, or the training of a run.

    Raises:
        UserError: The folder has no command and no `run.yaml`.
    """
    command = jobs.last_event(jobs.JobCommand, folder)
    return command.key if command else run_key(folder)
