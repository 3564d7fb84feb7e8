"""Cost of a training, `cost.json`: one entry per start, and their sum."""

import datetime
import os
import resource
import time
from pathlib import Path

import torch

from pipeline.core.layout import COST_FILE
from pipeline.core.records import training as records


class CostCounter:
    """Cost of this start, added to those of earlier starts of the run.

    It is written with every checkpoint, so that a killed process loses only its last minutes.

    Args:
        run_folder: Folder of `cost.json`.
        device: Where the model is trained.
        machine: Recorded in the entry.
        first: Steps done before this start.
    """

    def __init__(self, run_folder: Path, device: torch.device, machine: records.Machine, first: int):
        self.path = Path(run_folder) / COST_FILE
        earlier = records.TrainingCost.read_if_there(self.path)
        self.earlier = earlier.starts if earlier else ()
        self.device, self.machine, self.first = device, machine, first
        self.began, self.used = time.perf_counter(), time.process_time()
        self.started = now()
        self.tokens, self.flops = 0, 0.0

    def count(self, tokens: int, flops: float) -> None:
        """Add the cost of a step: target `tokens` without padding, and `flops` of this process."""
        self.tokens += tokens
        self.flops += flops

    def until(self, step: int) -> records.TrainingCost:
        """Return the cost of all starts; `step` is the number of steps done so far."""
        starts = (*self.earlier, self.entry(step))
        return records.TrainingCost(starts=starts, total=records.TotalCost.of(starts))

    def write(self, step: int) -> None:
        """Write the file."""
        self.until(step).write(self.path)

    def entry(self, step: int) -> records.StartCost:
        """Return the cost of this start so far."""
        seconds = time.perf_counter() - self.began
        gpus = self.machine.processes if self.device.type == "cuda" else 0
        return records.StartCost(
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
    """Return the peak memory in GiB: allocated on the GPU, or resident in this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def now() -> str:
    """Return the UTC time in ISO 8601, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
