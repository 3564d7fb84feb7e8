"""What was measured for a claim, and the verdict that follows."""

from dataclasses import dataclass

from pipeline.kinds.evidence import Evidence, verdict


class NotRun(Exception):
    """Something that a claim stands on was not measured."""


@dataclass(frozen=True)
class Findings:
    """`ours` as a reader sees it, the quantities that are positive if the claim is true, and how they were tested."""

    ours: str
    evidence: list[Evidence]
    test: str
    settled: str | None = None
    """The verdict of a claim that needs no evidence."""

    @property
    def verdict(self) -> str:
        return self.settled or verdict(self.evidence)

    @property
    def p_value(self) -> float | None:
        """The largest of the evidence; None without any."""
        return max((one.p_value for one in self.evidence if one.p_value is not None), default=None)
