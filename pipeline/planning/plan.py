"""Forecast the cost of the tables, claims and figures of the papers."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pipeline.analysis.cells.cell import short
from pipeline.core.artifacts import Calibration
from pipeline.core.command_line import Argument
from pipeline.core.disk import format_bytes
from pipeline.core.errors import count_of, in_hours
from pipeline.models.kernels import TRITON_SWITCH, triton_asked_for
from pipeline.papers.project import Project, ProjectOptions
from pipeline.planning.designs import Design, designs
from pipeline.planning.devices import NO_LAUNCHES, Device, launch_counts, load_devices, step_seconds
from pipeline.planning.jobs import Job, Jobs
from pipeline.planning.run_forecast import MeasuredSpeed, RunForecast
from pipeline.report.markup import grid, paragraphs, write_report
from pipeline.workflow.targets import reprise_command, snakemake_command

log = logging.getLogger(__name__)


def write_plan(
    *,
    paper: Annotated[tuple[str, ...], Argument(repeated=True)] = (),
    calibration: Path | None = None,
    out: Path,
    project: ProjectOptions,
) -> None:
    r"""Forecast what the papers will cost: FLOPs, hours, disk and downloads.

        python -m pipeline plan --set scale=paper --calibration work/paper/calibration.json \
            --out results/paper/plan.csv

    reads   papers, scale, dataset files, the corpora that are encoded, workflow/devices.yaml, and the calibration
    writes  <out>, one row per job, and a Markdown file, one row per training with totals

    FLOPs are counted from the models and their training steps; nothing is trained. `gpu_hours_<device>` come from
    workflow/devices.yaml and a model of a training step (planning/devices.py). `hours_here` come from measurements of
    this machine. `done` is the fraction of a job that is done already; all other columns are of the whole job.

    Args:
        paper: Paper to plan. May be given several times; by default all that are reproduced.
        calibration: File that `calibrate` wrote. Ignored if it does not exist.
        out: Plan to write, as CSV.
        project: The project and its settings.
    """
    loaded = project.load(paper)
    speed = MeasuredSpeed.read(calibration) if calibration and calibration.exists() else None
    jobs = Jobs(loaded, [*paper] or loaded.reproduced, speed)
    devices = load_devices(project.root / "workflow/devices.yaml")
    write_report(out, [row(job, devices) for job in jobs.all], render(loaded, jobs, devices))
    more = f"{out.with_suffix('.md')} has each training, and the smallest effect that each claim can show."
    log.info("%s\n%s\n%s", out, summary(loaded, jobs, devices), more)


def row(job: Job, devices: dict[str, Device]) -> dict[str, Any]:
    """Return a job as a row of the CSV; empty cells are unknown or do not apply."""
    forecast = job.forecast
    return {
        "job": job.kind,
        "name": job.name,
        "dataset": job.dataset,
        "done": round(job.done, 3),
        "parameters": forecast.parameters if forecast else "",
        "steps": forecast.steps if forecast else "",
        "tokens": round(forecast.tokens) if forecast else "",
        "flops": f"{job.flops:.4g}" if job.flops else "",
        "hours_here": f"{job.seconds / 3600:.4g}" if job.seconds is not None else "",
        **{
            f"gpu_hours_{name}": f"{gpu_hours(job, device):.4g}" if job.on_device else ""
            for name, device in devices.items()
        },
        "disk_bytes": round(job.disk_bytes) or "",
        "peak_disk_bytes": round(max(job.peak_bytes, job.disk_bytes)) or "",
        "download_bytes": job.download_bytes or "",
    }


def gpu_hours(job: Job, device: Device) -> float:
    """Return the hours that a job takes on one GPU, in the precision of its run."""
    if (found := job.forecast) is not None:
        each = step_seconds(
            found.spec, found.step, found.parameters, job.flops / found.steps, device, triton_asked_for()
        )
        return found.steps * each / 3600
    return job.flops / device.rate(job.precision) / 3600


def render(project: Project, found: Jobs, devices: dict[str, Device]) -> str:
    """Return the plan as Markdown: its summary, the trainings, and the effects that claims can detect."""
    header = ["training", "done", "parameters", "steps", "tokens", "FLOPs", "time here", *devices, "disk"]
    rows = [training_cells(job, job.forecast, devices) for job in found.all if job.forecast]
    effects = (shown_designs(paper, list(designs(project, paper))) for paper in found.papers)
    return paragraphs(summary(project, found, devices), grid(header, rows), *filter(None, effects))


def summary(project: Project, found: Jobs, devices: dict[str, Device]) -> str:
    """Return the totals of a plan, with notes."""
    jobs = found.all

    def trained(paper: str) -> list[Job]:
        """Return the jobs of a paper's own systems; those that it shares count where they are described."""
        return [job for job in jobs if job.name.startswith(f"{paper}/")]

    trainings = count_of(sum(job.forecast is not None for job in jobs), "training")
    totals = [
        total_cells(paper, of_paper, devices, lambda job: 1.0) for paper in found.papers if (of_paper := trained(paper))
    ]
    totals += [total_cells("all", jobs, devices, lambda job: 1.0)]
    totals += [total_cells("left to do", jobs, devices, lambda job: 1 - job.done)]
    return paragraphs(
        f"# Plan, scale {project.config.scale}",
        f"{count_of(len(jobs), 'job')}, {trainings} among them, for {', '.join(found.papers)}. "
        "Trainings, decodings and measurements together:",
        grid(["jobs", "FLOPs", "time here", *devices], totals),
        "\n".join(f"- {note}" for note in notes(project, found)),
    )


def shown_designs(paper: str, found: list[Design]) -> str:
    """Return a table of the effects that a paper's claims can detect; empty if none compares systems."""
    if not found:
        return ""
    header = ["claim", "group", "by", "seeds", "smallest effect", "printed effect"]
    noise = next((design.noise for design in found if design.noise), "")
    known = f"with the run-to-run variance {noise}" if noise else "if the run-to-run variance is known"
    about = (
        f"Claims of {paper}: the smallest effect that is significant four times in five at 5 %, before p-values are "
        f"adjusted, {known}. Perplexities are in nats. An effect is unknown if no variance was measured at this scale "
        "and on this data. Claims of other kinds, and those about one training, have none. Claims about steps or equal "
        "time also compare losses before the end of a training. These vary more than the last ones, whose variance was "
        "measured, so the smallest effect is larger."
    )
    return paragraphs(about, grid(header, [design_cells(design) for design in found]))


def design_cells(design: Design) -> list[str]:
    """Return a row of the table of detectable effects."""
    group, seeds = "primary" if design.primary else "", " and ".join(map(str, design.seeds))
    smallest = "unknown" if design.smallest is None else f"{design.smallest:.2g}"
    printed = "" if design.printed is None else f"{design.printed:.2g}"
    return [design.name, group, design.quantity, seeds, smallest, printed]


def notes(project: Project, found: Jobs) -> list[str]:
    """Return notes about the numbers and the disk."""
    gpus, calibration = project.scale.resources["train"].gpus, found.calibration
    measures = snakemake_command(project, project.layout.path(Calibration()))
    here = (
        f"on {calibration.device}, threads: {calibration.threads}, as `python -m pipeline calibrate` measured"
        if calibration
        else f"unknown; run `{measures}` on the machine that will train to measure them"
    )
    more = max((job.peak_bytes - job.disk_bytes for job in found.all), default=0)
    specs = [job.forecast.spec for job in found.all if job.forecast]
    uncounted = sorted({spec.model.architecture for spec in specs if launch_counts(spec) is NO_LAUNCHES})
    return [
        "Times are those of one device"
        + (f"; most trainings of this scale share {gpus} of them." if gpus > 1 else "."),
        f"Times here: {here}; other load on the machine adds to them.",
        "GPUs (workflow/devices.yaml): FLOPs over peak rate x assumed utilisation; for trainings in bfloat16 on a GPU "
        "with a known roofline, matrix multiplications and bytes moved; kernel launches if they take longer, "
        "but launches for each position of a CUDA graph in any case.",
        f"GPUs: steps {'replayed as CUDA graphs' if project.config.cuda_graphs else 'run eagerly'}; "
        + (
            f"Transformers with Triton kernels ({TRITON_SWITCH}=1)."
            if triton_asked_for()
            else f"torch's kernels ({TRITON_SWITCH} is not 1)."
        ),
        *(
            f"GPUs: launches of {name} are not counted (`COUNTED` in pipeline/planning/devices.py), so its times are "
            "too short."
            for name in uncounted
        ),
        f"Downloads: {format_bytes(sum(found.to_fetch.values()))}.",
        f"Disk: {format_bytes(found.disk_bytes)} when all is done, including downloads, and up to {format_bytes(more)} "
        f"for each training that runs; `{reprise_command(project, 'free')}` lists what can be deleted.",
    ]


def training_cells(job: Job, forecast: RunForecast, devices: dict[str, Device]) -> list[str]:
    """Return a row of the table of trainings."""
    return [
        job.name,
        f"{100 * job.done:.0f} %",
        short(str(forecast.parameters)),
        str(forecast.steps),
        short(f"{forecast.tokens:.0f}"),
        f"{job.flops:.2e}",
        in_hours(job.seconds / 3600) if job.seconds is not None else "",
        *(in_hours(gpu_hours(job, device)) for device in devices.values()),
        format_bytes(job.disk_bytes),
    ]


def total_cells(name: str, jobs: list[Job], devices: dict[str, Device], share: Callable[[Job], float]) -> list[str]:
    """Return a row of totals of the jobs that compute with a model.

    Args:
        name: Name of the row.
        jobs: Jobs to sum; those that do not compute with a model are skipped.
        devices: GPUs by name.
        share: Returns the fraction of a job that is counted.
    """
    computing = [job for job in jobs if job.on_device]
    here = [job.seconds * share(job) for job in computing if job.seconds is not None]
    by_device = [in_hours(sum(gpu_hours(job, device) * share(job) for job in computing)) for device in devices.values()]
    flops = sum(job.flops * share(job) for job in computing)
    return [name, f"{flops:.2e}", in_hours(sum(here) / 3600) if here else "", *by_device]
