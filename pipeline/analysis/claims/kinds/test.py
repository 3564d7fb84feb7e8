"""A statement that needs no training: an identity of the model or of a formula, which a test proves."""

from typing import Literal

from pydantic import Field

from pipeline.analysis.claims.claim import Claim, Findings
from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.names import TestName


class ProvedClaim(Claim):
    """A statement that needs no training."""

    about = "identity"

    kind: Literal["test"]
    tests: list[TestName] = Field(min_length=1, description="file::name of the tests that prove it")

    def judge(self, measured: Measurements) -> Findings:
        return Findings("", [], "; ".join(self.tests))
