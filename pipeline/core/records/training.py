"""Records of a training: `done.json`, `cost.json`, progress lines, and measured seed variance."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pipeline.core.errors import count_of
from pipeline.core.records.record import Record
from pipeline.core.schema import Closed


class TrainingLoss(Closed):
    """Training loss with dropout: nats per target symbol including EOS, and exp(nll)."""

    loss_per_token: float = Field(description="Nats, with label smoothing")
    nll_per_token: float = Field(description="Nats, without label smoothing")
    perplexity: float


class Loss(Closed):
    """Loss without dropout or smoothing: nats per target symbol including EOS, its exponential, number of symbols."""

    nll_per_token: float
    perplexity: float
    tokens: int


class BestLoss(Loss):
    """The lowest loss of a training, and its step."""

    step: int = Field(description="Steps done when it was measured")


class Parameters(Closed):
    """Numbers of trained and frozen weights."""

    total: int
    branch_weights: int


class RollBack(Closed):
    """A roll-back of a diverged training to its last good weights; the steps between are skipped."""

    at: int = Field(description="Step at which the training rolled back")
    to: int = Field(description="Step of the weights that it rolled back to")

    def gave_up(self, step: int) -> bool:
        """Return whether the weights after `step` steps were discarded."""
        return self.to < step < self.at


class Outcome(Closed):
    """Results of a training."""

    steps: int = Field(description="Steps done")
    dev: Loss
    best_dev: BestLoss | None = None
    train: TrainingLoss | None = Field(
        description="Mean loss of the steps between the last two validations; null if all were skipped"
    )
    fit: Loss | None = Field(default=None, description="Loss on the data of the first steps, without dropout")
    parameters: Parameters
    skipped_updates: int
    returned: RollBack | None = Field(default=None, description="Roll-back after a divergence; None if there was none")
    updates_per_epoch: int
    padding: float = Field(description="Fraction of padding in an epoch's positions")
    left_out_pairs: int
    micro_batch: int | None = Field(
        default=None, description="Positions of a micro-batch, if memory ran out with those of the settings"
    )
    provenance: dict[str, str | int] = Field(default={}, description="Commit, package versions, machine")
    continued_from: str | None = Field(
        default=None,
        description="Folder of the shorter run that it continued, whose last steps had another schedule",
    )


class TrainedRun(Outcome, Record):
    """`done.json` of a run."""

    remedy: ClassVar[str] = "train the run"

    key: str = Field(description="Digest of everything that decides the weights (pipeline/training/specification.py)")
    weights_digest: str = Field(description="SHA-256 of model.safetensors")


class MatmulSettings(Closed):
    """Way in which a processor multiplies matrices."""

    products: Literal["mkl", "onednn"] = Field(default="mkl", description="Library of float32 matrix multiplications")
    widened: bool = Field(default=False, description="bfloat16 is computed in float32, because that is faster here")

    def precision(self, asked: str) -> str:
        """Return the precision of matrix multiplications for a requested one."""
        return "fp32" if self.widened else asked


class Machine(MatmulSettings):
    """Machine properties that final bits may depend on, besides the run's key."""

    device: str = Field(description="Name of the GPU, else of the processor")
    threads: int = Field(description="CPU threads of a process")
    processes: int
    torch: str = Field(description="Version of torch")
    kernels: Literal["torch", "triton"] = Field(default="torch", description="Kernels of Transformers on a GPU")


class StartCost(Machine):
    """Cost of one start of a training."""

    started: str = Field(description="UTC, ISO 8601")
    stopped: str = Field(description="UTC, ISO 8601")
    node: str
    steps: int = Field(description="Steps of this start")
    seconds: float = Field(description="Wall-clock time")
    processor_seconds: float | None = Field(default=None, description="CPU time of the first process")
    gpu_hours: float = Field(description="0 on a CPU")
    peak_memory_gib: float
    tokens: int = Field(description="Target symbols, padding not counted")
    flops: float


class TotalCost(Closed):
    """Sums over all starts, and their peak memory. Work that a kill undid is included, as it was paid for."""

    starts: int
    steps: int
    seconds: float
    gpu_hours: float
    peak_memory_gib: float
    tokens: int
    flops: float

    @classmethod
    def of(cls, starts: tuple[StartCost, ...]) -> "TotalCost":
        """Sum up the starts of a training."""
        summed = ("steps", "seconds", "gpu_hours", "tokens", "flops")
        sums = {name: sum(getattr(start, name) for start in starts) for name in summed}
        return cls(starts=len(starts), peak_memory_gib=max(start.peak_memory_gib for start in starts), **sums)


class TrainingCost(Record):
    """`cost.json` of a run."""

    starts: tuple[StartCost, ...]
    total: TotalCost

    @property
    def device_hours(self) -> float:
        """Return the device hours over all starts and processes."""
        return sum(start.seconds * start.processes for start in self.starts) / 3600

    def share_kept(self, steps: int) -> float:
        """Return the share of all work that a training of so many `steps` kept; a kill undid the rest."""
        return min(1.0, steps / self.total.steps)

    @property
    def thread_seconds(self) -> float | None:
        """Return the CPU time of a thread; None if a GPU or several processes computed, or a start did not count it.

        Other load on the machine does not lengthen it.
        """
        counted = [
            start.processor_seconds / start.threads
            for start in self.starts
            if start.processor_seconds is not None and start.processes == 1 and not start.gpu_hours
        ]
        return sum(counted) if len(counted) == len(self.starts) else None

    @property
    def hardware(self) -> str:
        """Return the distinct devices, in order."""
        return "; ".join(dict.fromkeys(f"{start.processes} x {start.device}" for start in self.starts))


class ProgressLine(Record):
    """A line of `progress.jsonl`: means since the previous line, without skipped steps; null if all were skipped."""

    event: Literal["progress"] = "progress"
    step: int
    max_steps: int
    loss_per_token: float | None = Field(description="Nats, with label smoothing")
    nll_per_token: float | None = Field(description="Nats, without label smoothing")
    perplexity: float | None
    lr: float
    gradient_norm: float | None = Field(description="That of the last step that was not skipped, before clipping")
    skipped: int = Field(default=0, description="Steps that were skipped, as their loss or gradient was not finite")
    tokens_per_s: float
    loader_share: float = Field(description="Fraction of the time spent waiting for batches")
    seconds_left: float


class ValidationLine(Record):
    """A line of `progress.jsonl`: losses at a validation."""

    event: Literal["validation"] = "validation"
    step: int
    train: TrainingLoss | None = Field(description="Mean of the steps since the last one; null if all were skipped")
    fit: Loss | None = None
    dev: Loss


class MonitorLine(Record):
    """A line of `progress.jsonl`: monitored weights, by name."""

    event: Literal["monitor"] = "monitor"
    step: int
    values: dict[str, list[float]]


AnyProgress = Annotated[ProgressLine | ValidationLine | MonitorLine, Field(discriminator="event")]


class SampleLine(Record):
    """A line of `samples.jsonl`: a tokenised sentence of the development set and its greedy output."""

    step: int
    source: str
    reference: str
    hypothesis: str


DEV_LOSS = "dev_loss"
"""The metric "nats per symbol at the end of a training"."""


class MeasuredNoise(Record):
    """`docs/measured/noise/<kind>.json`: seed-to-seed variation of one system, trained with many seeds.

    It predicts what a design can detect. It also stands in, provisionally, if every system has one seed.
    """

    remedy: ClassVar[str] = "take docs/measured/noise from the repository"

    system: str
    dataset: str
    scale: str
    commit: str
    device: str
    seeds: list[int]
    weights: list[str] = Field(description="Digest of the final weights of each seed")
    values: dict[str, list[float]] = Field(description="Values of each seed, by metric")

    @property
    def title(self) -> str:
        """Describe the measured trainings."""
        return f"of {count_of(len(self.seeds), 'training')} of {self.system} at scale {self.scale}"
