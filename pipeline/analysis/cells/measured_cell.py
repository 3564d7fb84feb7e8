"""What the columns have in common that are read from scores."""

from pydantic import Field, model_validator

from pipeline.analysis.cells.cell import Row, RunCell
from pipeline.analysis.names import DecodingName
from pipeline.analysis.scored import ScoredSplits


class MeasuredCell(RunCell, ScoredSplits):
    """A column of scores: which metric, of which runs and decodings, on which test sets."""

    decoding: DecodingName | None = Field(default=None, description="Named decoding of the paper that owns the system")
    decoding_column: str | None = Field(
        default=None, description="Column that names each row's decoding instead; several names are averaged"
    )

    @model_validator(mode="after")
    def one_decoding(self):
        if (self.decoding is None) == (self.decoding_column is None):
            raise ValueError("needs one of decoding and decoding_column")
        return self

    @property
    def compared_metric(self) -> str | None:
        return self.metric

    def columns(self) -> set[str]:
        return super().columns() | ({self.decoding_column} if self.decoding_column else set())

    def decodings_of(self, row: Row) -> list[str]:
        return [self.decoding] if self.decoding else row[self.decoding_column or ""].split()
