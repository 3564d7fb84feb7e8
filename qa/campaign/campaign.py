"""One project run through Slurm to its end, by restarting the same command after every stop."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from pipeline.cluster.state import newest_checkpoint, read_starts, read_submission
from pipeline.core.artifacts import Artifact, Raw, RunArtifact, RunId
from pipeline.core.provenance import ROOT
from pipeline.papers.project import load_project
from pipeline.workflow.graph import Graph, runs_in
from qa.campaign.project import SETTINGS, STEPS
from tests.cluster.tracing import set_pace, submitted

PROGRAMS = Path(sys.executable).parent
QUICK = ("--slurm-init-seconds-before-status-checks", "2")
LONGEST_S = 3 * 3600
MOST_LIVES = 12
CRASHED_S = 30.0
ENDED = ("COMPLETED", "FAILED", "NODE_FAIL")
OF_SNAKEMAKE = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Pattern of the job names that Snakemake's own executor uses."""


class Campaign:
    """A driver of the project in `root`, and the state of its trainings.

    Args:
        root: Folder of the project.
        targets: What to make; by default all reports.
        programs: Folder with the Python to run it by.

    Attributes:
        broken: Run whose training always fails; None if there is none.
        lives: How the driver ended each time: its exit status, or the signal that killed it.
    """

    def __init__(self, root: Path, targets: tuple[Artifact, ...] = (), programs: Path = PROGRAMS):
        self.root = root
        project = load_project(root, SETTINGS)
        self.graph = graph = Graph(project)
        self.artifacts = targets or tuple(graph.reports(project.reproduced))
        self.reports = [str(project.layout.path(artifact)) for artifact in self.artifacts]
        self.targets = self.reports if targets else ["all"]
        self.raw = [str(project.layout.path(made)) for made in graph.closure(self.artifacts) if isinstance(made, Raw)]
        self.python = programs / "python"
        self.runs = {run: root / project.layout.run(run) for run in runs_in(graph.closure(self.artifacts))}
        self.broken: RunId | None = None
        self.killed: Counter[RunId] = Counter()
        self.lives: list[int] = []
        self.environment = os.environ | {
            "PATH": f"{programs}:{PROGRAMS}:{os.environ['PATH']}",
            "PYTHONPATH": f"{root}:{ROOT / 'tests/cluster'}",
            "REPRISE_QUEUE_INTERVAL": "1",
            "TMPDIR": str(root / "tmp"),
        }
        (root / "tmp").mkdir(exist_ok=True)
        self.driver: subprocess.Popen | None = None
        self.over = False

    def alone(self) -> list[RunId]:
        """Return the runs that no other run or decoding depends on."""
        made = [artifact for artifact in self.graph.closure(self.artifacts) if isinstance(artifact, RunArtifact)]
        taken = {run for artifact in made for run in runs_in(self.graph.closure([artifact])) if run != artifact.run}
        return sorted(self.runs.keys() - taken, key=lambda run: run.folder)

    def let_fail(self, run: RunId) -> None:
        """Make a training fail at every attempt: a file lies where it needs a folder."""
        self.broken = run
        self.runs[run].mkdir(parents=True, exist_ok=True)
        (self.runs[run] / "checkpoints").touch()

    def let_clock_be_set(self) -> None:
        """Add the seconds in the file `clock` to the time of day, from the next start on."""
        library = self.root / "clock.so"
        source = Path(__file__).with_name("clock.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        self.clock.write_text("0")
        self.environment |= {"LD_PRELOAD": str(library), "REPRISE_CLOCK": str(self.clock)}

    @property
    def clock(self) -> Path:
        return self.root / "clock"

    def start(self, *options: str) -> None:
        """Start `snakemake --profile slurm` in a process group of its own, with its launchers."""
        command = [self.python, "-m", "snakemake", *options, "--", *self.targets]
        with open(self.log, "wb") as log:
            self.driver = subprocess.Popen(
                command, cwd=self.root, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    @property
    def log(self) -> Path:
        """Path of the log of the driver's current life."""
        return self.root / f"driver-{len(self.lives)}.log"

    def call(self, *command: str) -> subprocess.CompletedProcess:
        """Run a command in the project, as a user would type it."""
        return subprocess.run(
            [self.python, "-m", *command], cwd=self.root, env=self.environment, capture_output=True, text=True
        )

    def drive(self, *options: str) -> None:
        """Restart the driver until nothing is left to do.

        Raises:
            AssertionError: It gives up without a reason.
        """
        deadline = time.monotonic() + LONGEST_S
        while True:
            self.start(*(options or ("--profile", "slurm", *QUICK)))
            status = self.driver.wait(deadline - time.monotonic())
            said = self.log.read_text(errors="replace")
            failed = re.findall(r"^error: .*\(log: (.+?)\)$", said, re.MULTILINE)
            self.lives.append(status)
            if status == 0 or (status == 1 and failed and all(self.is_of_broken(log) for log in failed)):
                self.over = True
                return
            assert len(self.lives) < MOST_LIVES, said[-3000:]

    def is_of_broken(self, log: str) -> bool:
        return self.broken is not None and str(self.runs[self.broken].relative_to(self.root)) in log

    def hurry(self) -> None:
        """Let all trainings end as fast as they can."""
        for folder in self.runs.values():
            set_pace(folder, 0)

    def kill_driver(self) -> None:
        """Kill the driver, and wait until it runs again if it ran before."""
        driver = self.driver
        with contextlib.suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
        while self.driver is driver and not self.over:
            time.sleep(0.2)

    def end(self) -> None:
        """Kill the processes and jobs that are left, here and in Slurm."""
        self.over = True
        if self.driver and self.driver.poll() is None:
            self.kill_driver()
        for record in filter(None, map(read_submission, self.runs.values())):
            if record.launcher == "slurm" and record.job:
                subprocess.run(["scancel", "--quiet", record.job], check=False)

    @property
    def progress(self) -> float:
        """Share of all training steps that are done, without the run that fails."""
        folders = [folder for run, folder in self.runs.items() if run != self.broken]
        done = [STEPS if (folder / "done.json").exists() else newest_checkpoint(folder) for folder in folders]
        return sum(done) / (STEPS * len(done))

    def at_work(self) -> list[RunId]:
        """Return the runs whose training has begun and not ended since."""
        lines = ((run, read_starts(folder)) for run, folder in self.runs.items() if run != self.broken)
        return [run for run, found in lines if found and found[-1].event == "start"]

    def jobs(self, run: RunId) -> list[str]:
        """Return the ids of all jobs that were submitted for a training."""
        return submitted(self.runs[run])

    def mute(self, run: RunId) -> list[str]:
        """Return the jobs that ended, in Slurm's records, without a cancellation or a word of their process.

        Such a job was killed, never began on a failed node, or had no disk space. Without accounting there are none.
        """
        told = {line.job for line in read_starts(self.runs[run]) if line.event == "stop"}
        asked = ["sacct", "-XnP", "--format=JobID,State", f"--jobs={','.join(self.jobs(run))}"]
        rows = (line.split("|") for line in subprocess.run(asked, capture_output=True, text=True).stdout.splitlines())
        return [job for job, state in rows if state in ENDED and job not in told]


class Watch(threading.Thread):
    """A thread that asks Slurm repeatedly which jobs run; two jobs never may have one name.

    If the controller is away for longer than any fault lasts, it crashed by itself. Slurm 22.05 does so if a lost node
    returns with jobs that are queued again. The controller is then started again, as a site's init system would.
    """

    def __init__(self, every_s: float = 1.0):
        super().__init__(daemon=True)
        self.every_s, self.over = every_s, threading.Event()
        self.doubled: set[str] = set()
        self.most = self.crashes = 0

    def run(self) -> None:
        silent_since = None
        while not self.over.wait(self.every_s):
            if (found := running()) is None:
                silent_since = silent_since or time.monotonic()
                if time.monotonic() - silent_since > CRASHED_S:
                    self.crashes += subprocess.run(["slurmctld"], check=False).returncode == 0
                    silent_since = None
                continue
            silent_since = None
            names = Counter(found.values())
            self.doubled |= {name for name, count in names.items() if count > 1 and not OF_SNAKEMAKE.fullmatch(name)}
            self.most = max(self.most, names.total())

    def stop(self) -> None:
        self.over.set()
        self.join()


def running() -> dict[str, str] | None:
    """Return the names of running jobs by id; None if Slurm does not answer."""
    command = ["squeue", "--noheader", "--states=RUNNING", "--format=%A|%j"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    if asked.returncode:
        return None
    return dict(line.split("|", 1) for line in asked.stdout.splitlines() if "|" in line)
