"""A campaign: one project driven through Slurm to its end by whoever starts the same command again after every stop."""

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
from pipeline.core.artifacts import Product, RunArtifact, RunId
from pipeline.core.digests import ROOT
from pipeline.papers.project import load_project
from pipeline.workflow.graph import Graph, runs_in
from qa.campaign.project import SETTINGS, STEPS
from tests.cluster.tracing import submitted

QUICK = ("--slurm-init-seconds-before-status-checks", "2")
LONGEST_S = 3 * 3600
MOST_LIVES = 12
CRASHED_S = 30.0
ENDED = ("COMPLETED", "FAILED", "NODE_FAIL")
OF_SNAKEMAKE = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""What its own executor calls all the jobs that it submits."""


class Campaign:
    """Drives `targets` of the project in `root`, and knows what its trainings do.

    Attributes:
        broken: the run whose training fails whatever is done; None where none does.
        lives: how the driver ended each time: its exit status, or the signal that killed it.
    """

    def __init__(self, root: Path, targets: tuple[Product, ...] = ()):
        self.root = root
        project = load_project(root, SETTINGS)
        self.graph = graph = Graph(project)
        self.products = targets or tuple(graph.reports(project.reproduced))
        self.reports = [str(project.layout.path(product)) for product in self.products]
        self.targets = self.reports if targets else ["all"]
        self.runs = {run: root / project.layout.run(run) for run in runs_in(graph.closure(self.products))}
        self.broken: RunId | None = None
        self.killed: Counter[RunId] = Counter()
        self.lives: list[int] = []
        self.environment = os.environ | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": f"{root}:{ROOT / 'tests/cluster'}",
            "REPRISE_QUEUE_INTERVAL": "1",
            "TMPDIR": str(root / "tmp"),
        }
        (root / "tmp").mkdir(exist_ok=True)
        self.driver: subprocess.Popen | None = None
        self.over = False

    def alone(self) -> list[RunId]:
        """Runs that no other run, and no other's decoding, takes anything from."""
        made = [product for product in self.graph.closure(self.products) if isinstance(product, RunArtifact)]
        taken = {run for product in made for run in runs_in(self.graph.closure([product])) if run != product.run}
        return sorted(self.runs.keys() - taken, key=lambda run: run.folder)

    def let_fail(self, run: RunId) -> None:
        """However often it is tried: a file lies where its training needs a folder."""
        self.broken = run
        self.runs[run].mkdir(parents=True, exist_ok=True)
        (self.runs[run] / "checkpoints").touch()

    def let_clock_be_set(self) -> None:
        """From the next start on the file `clock` has the seconds that are added to the time of day."""
        library = self.root / "clock.so"
        source = Path(__file__).with_name("clock.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        self.clock.write_text("0")
        self.environment |= {"LD_PRELOAD": str(library), "REPRISE_CLOCK": str(self.clock)}

    @property
    def clock(self) -> Path:
        return self.root / "clock"

    def start(self, *options: str) -> None:
        """`snakemake --profile slurm`, in a group of its own with its launchers."""
        command = [sys.executable, "-m", "snakemake", *options, "--", *self.targets]
        with open(self.log, "wb") as log:
            self.driver = subprocess.Popen(
                command, cwd=self.root, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    @property
    def log(self) -> Path:
        """Of the driver's present life."""
        return self.root / f"driver-{len(self.lives)}.log"

    def call(self, *command: str) -> subprocess.CompletedProcess:
        """A command in the project, as a user would type it."""
        return subprocess.run(
            [sys.executable, "-m", *command], cwd=self.root, env=self.environment, capture_output=True, text=True
        )

    def drive(self, *options: str) -> None:
        """Start the driver again until nothing is left to do. Raises AssertionError when it gives up for no reason."""
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

    def kill_driver(self) -> None:
        """And wait until it drives again, if it drove."""
        driver = self.driver
        with contextlib.suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
        while self.driver is driver and not self.over:
            time.sleep(0.2)

    def end(self) -> None:
        """Kill what is left of it, here and in Slurm."""
        self.over = True
        if self.driver and self.driver.poll() is None:
            self.kill_driver()
        for record in filter(None, map(read_submission, self.runs.values())):
            if record.launcher == "slurm" and record.job:
                subprocess.run(["scancel", "--quiet", record.job], check=False)

    @property
    def progress(self) -> float:
        """Share of all updates that are done, but of the run that fails."""
        folders = [folder for run, folder in self.runs.items() if run != self.broken]
        done = [STEPS if (folder / "done.json").exists() else newest_checkpoint(folder) for folder in folders]
        return sum(done) / (STEPS * len(done))

    def at_work(self) -> list[RunId]:
        """Runs whose training has begun, and has not ended since."""
        lines = ((run, read_starts(folder)) for run, folder in self.runs.items() if run != self.broken)
        return [run for run, found in lines if found and found[-1].event == "start"]

    def jobs(self, run: RunId) -> list[str]:
        """That were ever submitted for a training."""
        return submitted(self.runs[run])

    def mute(self, run: RunId) -> list[str]:
        """Those of which Slurm says that they ended, but not that somebody cancelled them, and whose process never said
        so: killed, never begun on a node that came to grief, or without a byte of disk. None without accounting."""
        told = {line.job for line in read_starts(self.runs[run]) if line.event == "stop"}
        asked = ["sacct", "-XnP", "--format=JobID,State", f"--jobs={','.join(self.jobs(run))}"]
        rows = (line.split("|") for line in subprocess.run(asked, capture_output=True, text=True).stdout.splitlines())
        return [job for job, state in rows if state in ENDED and job not in told]


class Watch(threading.Thread):
    """Asks Slurm again and again which jobs run; two of one name never may.

    Where the controller is away for longer than any fault lasts, it crashed by itself (22.05 does, when
    a lost node comes back with jobs that are queued again), and is started anew, as a site's init system would.
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
    """Names of the jobs that run, by id; None where Slurm does not answer."""
    command = ["squeue", "--noheader", "--states=RUNNING", "--format=%A|%j"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    if asked.returncode:
        return None
    return dict(line.split("|", 1) for line in asked.stdout.splitlines() if "|" in line)
