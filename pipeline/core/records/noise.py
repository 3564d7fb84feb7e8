"""What training one system many times showed of the noise between trainings: `docs/measured/noise/<kind>.json`.

It says what a design can see before anything is run, and stands in, provisionally, where every system has one seed.
"""

from typing import ClassVar

from pydantic import Field

from pipeline.core.records.record import Record

DEV_LOSS = "dev_loss"
"""Among the metrics: nats a symbol at the end of a training."""


class MeasuredNoise(Record):
    """Of one system under many seeds."""

    remedy: ClassVar[str] = "take docs/measured/noise from the repository"

    system: str
    dataset: str
    scale: str
    commit: str
    device: str
    seeds: list[int]
    weights: list[str] = Field(description="Digests of the weights that each seed ended in")
    values: dict[str, list[float]] = Field(description="By metric, of each seed")

    @property
    def title(self) -> str:
        return f"as {len(self.seeds)} trainings of {self.system} at scale {self.scale} had"
