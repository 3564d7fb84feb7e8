from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from pydantic import Field

from pipeline.analysis.cells.cell import Cell, Place, Row, in_our_unit, is_ours
from pipeline.analysis.names import SystemName
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import ModelSizes, Product
from pipeline.core.schema import Count, Positive, unknown


class SizeCell(Cell):
    """The trainable parameters of a row's system as the paper has it, whatever the scale: its printed settings."""

    kind: Literal["size"]
    vocab: Count = Field(description="Rows of the embeddings")
    vocab_of: dict[SystemName, Count] = Field(default={}, description="The same for single systems")
    why: str = Field(description="Where these numbers are from; stands below the table")
    unit: Positive = Field(default=1, description="Printed value x unit = ours")
    system: str = Field(default="system", description="Column of the printed table that names the system")

    def columns(self) -> set[str]:
        return super().columns() | {self.system}

    def faults(self, rows: Sequence[Row], cells: Mapping[str, Cell], where: str) -> Iterator[str | None]:
        for system in self.vocab_of:
            yield unknown(system, {row[self.system] for row in rows}, f"{where}.vocab_of")

    def size_of(self, row: Row) -> tuple[str, int] | None:
        """System and vocabulary of the model that is counted; None where there is none."""
        system = row[self.system] if is_ours(row) else ""
        return (system, self.vocab_of.get(system, self.vocab)) if system else None

    def needs(self, view: PaperView, row: Row) -> Iterator[Product]:
        if self.size_of(row):
            yield ModelSizes(view.paper)

    def fill(self, place: Place) -> dict[str, str]:
        wanted = self.size_of(place.row)
        sizes = place.table.measured.model_sizes if wanted else {}
        ours = str(sizes[wanted]) if wanted in sizes else ""
        return {"printed": in_our_unit(self.printed_in(place.row), self.unit), "ours": ours}

    def note(self, values: Sequence[Mapping[str, str]], remark: str) -> str:
        others = "".join(f", {vocab} for {system}" for system, vocab in self.vocab_of.items())
        used = f"{self.vocab} rows of embeddings{others}"
        return f"trainable parameters at the paper's size, with {used}. {self.why}"
