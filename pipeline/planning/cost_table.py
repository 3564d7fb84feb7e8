"""Compare the cost of trainings and decodings with the forecast."""

import csv
import logging
from pathlib import Path
from typing import Any

from pipeline.core import files, json_csv, layout
from pipeline.core.artifacts import RunId
from pipeline.core.errors import count_of
from pipeline.core.records.outputs import Decoded
from pipeline.core.records.training import TrainingCost
from pipeline.papers.project import Project, ProjectOptions
from pipeline.planning.devices import is_device, load_devices
from pipeline.workflow.targets import snakemake_command

log = logging.getLogger(__name__)

COLUMNS = [
    *("job", "name", "device", "steps", "steps_done", "starts", "tokens_forecast", "tokens", "flops_forecast", "flops"),
    *("hours_forecast", "hours", "processor_hours", "ratio", "gpu_hours", "peak_memory_gib"),
]


def write_costs(*, plan: Path, out: Path, project: ProjectOptions) -> None:
    """Compare the measured cost of trainings and decodings with the forecast.

        python -m pipeline cost --set scale=demo --plan results/demo/plan.csv --out results/demo/cost.csv

    reads   the plan, and cost.json, translations/ and transcripts/ of the runs
    writes  <out>, one row per training or decoding that has begun

    `ratio` is measured over forecast. For an unfinished run, the forecast covers the training steps done so far,
    including those that were repeated after a kill. On a CPU the forecast is of CPU time, so it is compared with
    `processor_hours`; `hours` is wall-clock time, which other load on the machine lengthens.

    Args:
        plan: Forecast that `plan` wrote.
        out: CSV to write.
        project: The project and its settings.
    """
    loaded = project.load()
    devices = list(load_devices(project.root / "workflow/devices.yaml"))
    rows = [found for planned in read_plan(plan, loaded) if (found := compare(loaded, planned, devices))]
    json_csv.write_csv(out, rows, COLUMNS)
    for row in rows:
        log.info("%s %s: ratio %s", row["job"], row["name"], row["ratio"] or "unknown")
    log.info("%s: %s", out, count_of(len(rows), "job"))


def read_plan(path: Path, project: Project) -> list[dict[str, str]]:
    """Return the forecast, a row per job.

    Raises:
        UserError: The file cannot be read. The message names the command that writes it.
    """
    with (
        files.read_errors(f"`{snakemake_command(project, 'plan')}` writes it, before `cost`"),
        open(path, encoding="utf-8", newline="") as file,
    ):
        return list(csv.DictReader(file))


def compare(project: Project, planned: dict[str, str], devices: list[str]) -> dict[str, Any] | None:
    """Return the measured row of a `planned` job, by known GPUs `devices`, or None if the job has not begun."""
    if planned["job"] not in ("train", "translate"):
        return None
    run, *rest = planned["name"].split()
    folder = project.layout.run(RunId.of(run))
    if planned["job"] == "train" and (path := folder / layout.COST_FILE).exists():
        return training_row(planned, TrainingCost.read(path), devices)
    name = "/".join(rest)
    path = folder / ("transcripts" if "@" in name else "translations") / f"{name}.json"
    if planned["job"] == "translate" and path.exists():
        report, cost = Decoded.read(path), TrainingCost.read_if_there(folder / layout.COST_FILE)
        return decoding_row(planned, report, report.device_name(cost), devices)
    return None


def training_row(planned: dict[str, str], cost: TrainingCost, devices: list[str]) -> dict[str, Any]:
    """Return the row of a training (see `compare`)."""
    total, last = cost.total, cost.starts[-1]
    share = total.steps / int(planned["steps"])
    forecast = forecast_hours(planned, last.device, devices)
    used = cost.thread_seconds
    fact = total.gpu_hours or (used or total.seconds) / 3600
    return {
        "job": "train",
        "name": planned["name"],
        "device": last.device,
        "steps": planned["steps"],
        "steps_done": total.steps,
        "starts": total.starts,
        "tokens_forecast": round(share * float(planned["tokens"])),
        "tokens": total.tokens,
        "flops_forecast": f"{share * float(planned['flops']):.4g}",
        "flops": f"{total.flops:.4g}",
        "hours_forecast": f"{share * forecast:.4g}" if forecast else "",
        "hours": f"{total.seconds / 3600:.4g}",
        "processor_hours": f"{used / 3600:.4g}" if used else "",
        "ratio": f"{fact / (share * forecast):.3f}" if forecast and share else "",  # it may stop before its first step
        "gpu_hours": f"{total.gpu_hours:.4g}" if total.gpu_hours else "",
        "peak_memory_gib": total.peak_memory_gib,
    }


def forecast_hours(planned: dict[str, str], device: str, devices: list[str]) -> float | None:
    """Return the forecast hours on the device that was used: a known GPU, else this machine; None if there are none.

    A GPU that joined workflow/devices.yaml after the plan was made has none.

    Args:
        planned: Row of the plan.
        device: Name of the device that was used.
        devices: Names of known GPUs.
    """
    named = next((name for name in devices if is_device(name, device)), None)
    text = planned.get(f"gpu_hours_{named}") if named else planned["hours_here"]
    return float(text) if text else None


def decoding_row(planned: dict[str, str], report: Decoded, device: str, devices: list[str]) -> dict[str, Any]:
    """Return the row of a translation or transcription (see `compare`), on its `device` or that of its training."""
    is_known = report.device == "cpu" or any(is_device(name, device) for name in devices)
    forecast = forecast_hours(planned, device, devices) if is_known else None
    hours = report.seconds / 3600
    return {
        "job": "translate",
        "name": planned["name"],
        "device": report.device,
        "flops_forecast": planned["flops"],
        "hours_forecast": f"{forecast:.4g}" if forecast else "",
        "hours": f"{hours:.4g}",
        "ratio": f"{hours / forecast:.3f}" if forecast else "",
    }
