"""What a training cost: `cost.json`, one entry a start, added up. Written by the process that does the work."""

import datetime
import os
import resource
import time
from pathlib import Path
from typing import Any

import torch

from pipeline.files import read_json, write_json


class CostRecord:
    """Counts from now on, beside what earlier starts of the run wrote.

    Written whenever a checkpoint is, so that a killed process leaves all but its last minutes.
    """

    def __init__(self, run_folder: Path, device: torch.device, machine: dict[str, str | int], first: int):
        self.path = Path(run_folder) / "cost.json"
        self.earlier = read_json(self.path)["starts"] if self.path.exists() else []
        self.device, self.machine, self.first = device, machine, first
        self.began, self.used = time.perf_counter(), time.process_time()
        self.started = now()
        self.tokens, self.flops = 0, 0.0

    def count(self, tokens: int, flops: float) -> None:
        """Add an update's target tokens, padding not counted, and its floating-point operations."""
        self.tokens += tokens
        self.flops += flops

    def write(self, step: int) -> None:
        """Bring the file up to date; `step`: updates done so far."""
        starts = [*self.earlier, self.entry(step)]
        write_json(self.path, {"starts": starts, "total": total(starts)})

    def entry(self, step: int) -> dict[str, Any]:
        """What this start has cost until now."""
        seconds = time.perf_counter() - self.began
        gpus = self.machine["processes"] if self.device.type == "cuda" else 0
        return {
            "started": self.started,
            "stopped": now(),
            "node": os.uname().nodename,
            **self.machine,
            "steps": step - self.first,
            "seconds": round(seconds, 3),
            "processor_seconds": round(time.process_time() - self.used, 3),
            "gpu_hours": gpus * seconds / 3600,
            "peak_memory_gib": round(peak_memory_gib(self.device), 3),
            "tokens": self.tokens,
            "flops": self.flops,
        }


def total(starts: list[dict[str, Any]]) -> dict[str, Any]:
    """Sums over all starts, and the largest memory of any; work that a kill undid is in them, as it was paid for."""
    added = {key: sum(start[key] for start in starts) for key in ("steps", "seconds", "gpu_hours", "tokens", "flops")}
    return added | {"starts": len(starts), "peak_memory_gib": max(start["peak_memory_gib"] for start in starts)}


def peak_memory_gib(device: torch.device) -> float:
    """Most memory held at once: of the GPU's allocator, or resident in this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
