"""What a training cost: `cost.json`, one entry a start, added up. Written by the process that does the work."""

import datetime
import os
import resource
import time
from pathlib import Path

import torch

from pipeline.core.layout import COST_FILE
from pipeline.core.records.training import Machine, StartCost, TotalCost, TrainingCost


class CostCounter:
    """Counts from now on, beside what earlier starts of the run wrote.

    Written whenever a checkpoint is, so that a killed process leaves all but its last minutes.
    """

    def __init__(self, run_folder: Path, device: torch.device, machine: Machine, first: int):
        self.path = Path(run_folder) / COST_FILE
        earlier = TrainingCost.read_if_there(self.path)
        self.earlier = earlier.starts if earlier else ()
        self.device, self.machine, self.first = device, machine, first
        self.began, self.used = time.perf_counter(), time.process_time()
        self.started = now()
        self.tokens, self.flops = 0, 0.0

    def count(self, tokens: int, flops: float) -> None:
        """Add an update's target tokens, padding not counted, and its floating-point operations."""
        self.tokens += tokens
        self.flops += flops

    def until(self, step: int) -> TrainingCost:
        """All starts; `step`: updates done so far."""
        starts = (*self.earlier, self.entry(step))
        return TrainingCost(starts=starts, total=TotalCost.of(starts))

    def write(self, step: int) -> None:
        """Bring the file up to date."""
        self.until(step).write(self.path)

    def entry(self, step: int) -> StartCost:
        """What this start has cost until now."""
        seconds = time.perf_counter() - self.began
        gpus = self.machine.processes if self.device.type == "cuda" else 0
        return StartCost(
            started=self.started,
            stopped=now(),
            node=os.uname().nodename,
            **dict(self.machine),
            steps=step - self.first,
            seconds=round(seconds, 3),
            processor_seconds=round(time.process_time() - self.used, 3),
            gpu_hours=gpus * seconds / 3600,
            peak_memory_gib=round(peak_memory_gib(self.device), 3),
            tokens=self.tokens,
            flops=self.flops,
        )


def peak_memory_gib(device: torch.device) -> float:
    """Most memory held at once: of the GPU's allocator, or resident in this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
