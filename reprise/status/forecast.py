"""Forecast of the remaining device hours of a campaign, by the plan and current progress."""

import time
from collections.abc import Iterable, Mapping
from functools import cached_property

from pipeline.core.artifacts import Calibration, RunId
from pipeline.core.layout import Layout
from pipeline.papers.project import Project
from pipeline.planning.devices import load_devices
from pipeline.planning.jobs import Job, Jobs
from pipeline.planning.plan import gpu_hours
from pipeline.planning.run_forecast import Calibration as Measured
from pipeline.workflow.campaign import Campaign
from pipeline.workflow.runs import RunState

RENEWED_S = 300.0
HERE = "this machine"


class Forecast:
    """A plan of all jobs, which takes seconds to compute and is renewed every few minutes."""

    def __init__(self, project: Project, papers: Iterable[str]):
        self.project, self.papers = project, list(papers)
        self.made, self.planned = 0.0, list[Job]()

    @cached_property
    def devices(self):
        """Load the devices of the workflow."""
        return load_devices(self.project.root / "workflow/devices.yaml")

    def hours(self, campaign: Campaign) -> dict[str, float]:
        """Return the remaining hours by device: devices in use, else all that have bfloat16.

        It is empty if trainings run on a CPU that was not calibrated.
        """
        self.renew()
        states = {state.run: state for state in campaign.runs}
        left = [(job, share) for job in self.planned if (share := share_left(job, states))]
        if not self.project.scale.resources["train"].gpus:
            known = [job.seconds * share / 3600 for job, share in left if job.seconds is not None]
            return {HERE: sum(known)} if known or not left else {}
        used = [name for name in self.devices if any(name in device for device in campaign.hours)]
        named = used or [name for name, device in self.devices.items() if device.bf16]
        return {name: sum(gpu_hours(job, self.devices[name]) * share for job, share in left) for name in named}

    def renew(self) -> None:
        """Compute the plan again if it is old."""
        if self.planned and time.monotonic() - self.made < RENEWED_S:
            return
        found = Jobs(self.project, self.papers, measured(self.project.layout)).all
        self.made, self.planned = time.monotonic(), [job for job in found if job.on_device]


def share_left(job: Job, states: Mapping[RunId, RunState]) -> float:
    """Return the share of a job that is not done; for a training by its last step."""
    state = states.get(job.run) if job.run and job.kind == "train" else None
    return 1 - (state.step / state.steps if state else job.done)


def measured(layout: Layout) -> Measured | None:
    """Read the calibration of this machine, if there is one."""
    path = layout.path(Calibration())
    return Measured.read(path) if path.exists() else None
