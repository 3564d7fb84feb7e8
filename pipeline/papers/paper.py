"""The records of `workflow/papers/<paper>/paper.yaml` and of the printed tables beside it."""

import csv
import io
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from pipeline.analysis.cells import AnyCell
from pipeline.analysis.cells.cell import Row
from pipeline.analysis.figures import AnyFigure
from pipeline.analysis.names import (
    DatasetName,
    DecodingName,
    MetricName,
    NewName,
    ScaleName,
    ScoredSplit,
    SystemName,
    SystemPattern,
    TrainedName,
)
from pipeline.config import DecodingSettings
from pipeline.core.errors import UserError, one_line, shown
from pipeline.core.schema import Closed, Count, CountOrNone, load_yaml, nearest, validate
from pipeline.papers.reading import Reading

FileName = Annotated[str, Field(pattern=r"^[\w.-]+$", max_length=100)]
Source = Literal["ours-to-run", "cited", "analytic", "input", "reference"]
Changed = Literal["test set", "metric", "model", "data", "budget"]


class SystemEntry(Closed):
    """A table row's model and recipe, written as differences from another system."""

    base: SystemName | None = Field(
        default=None, description="System it differs from: `name`, or `paper/name` of another paper"
    )
    description: str = Field(description="What the row stands for, in the paper's words or symbols")
    datasets: dict[DatasetName, DatasetName] = Field(
        default={}, description="Dataset it is run on by the one that a table names, e.g. one with more training data"
    )
    model: dict[str, Any] = Field(default={}, description="Keys of the model section that differ")
    fusion: dict[str, Any] = Field(default={}, description="Keys of the fusion section that differ; none = no fusion")
    language_model: TrainedName | None = Field(
        default=None, description="What is fused: `system@dataset` or `paper/system@dataset`, of the same seed"
    )
    initial: TrainedName | None = Field(
        default=None, description="Whose weights the training starts from, written as `language_model` is"
    )
    training: dict[str, Any] = Field(default={}, description="Keys of the training section that differ")
    decodings: dict[DecodingName, dict[str, Any]] = Field(default={}, description="Keys that differ, by named decoding")


class DecodingEntry(DecodingSettings):
    """A way of decoding, written as differences from another."""

    base: str | None = Field(
        default=None, description="Decoding it differs from: `name`, or `paper/name` of another paper"
    )

    @property
    def differences(self) -> dict[str, Any]:
        return self.model_dump(exclude_unset=True, exclude={"base"})


def with_kinds(cells: Any) -> Any:
    """A table's cells as they are written, with the kind of those that are scores and need not say so."""
    if not isinstance(cells, dict):
        return cells
    return {name: {"kind": "score", **cell} if isinstance(cell, dict) else cell for name, cell in cells.items()}


class TableEntry(Closed):
    """A printed table and what is measured for it."""

    scales: list[ScaleName] | None = Field(default=None, description="Scales at which it can be measured; null = all")
    on_request: bool = Field(default=False, description="Made only where its file is asked for: it needs a user's data")
    caption: str = Field(description="Stands alone: what is measured, on what, by whom")
    printed: FileName = Field(description="CSV of printed numbers, beside paper.yaml")
    label: list[str] = Field(description="Columns that name a row")
    settings: list[str] = Field(default=[], description="Columns that show a row's settings in the paper's symbols")
    cells: Annotated[dict[NewName, AnyCell], BeforeValidator(with_kinds)] = Field(description="Measured columns")
    printed_metrics: dict[str, MetricName] = Field(
        default={}, description="By which metric a printed column was measured; only a score of the same is comparable"
    )


class Examples(Closed):
    """A table of one sentence with every system's translation of it.

    Of the sentences of a length in a range, it is the one about which the systems differ most: their BLEU for this
    sentence alone has the largest standard deviation; of several such, the first. The rule looks at no system's name.
    """

    caption: str = Field(description="Stands alone: what is shown, and how the sentence was chosen")
    printed: FileName = Field(description="CSV of the printed sentence, beside paper.yaml")
    dataset: DatasetName = Field(description="Dataset as the paper names it; the scale says what stands in for it")
    splits: list[ScoredSplit] = Field(min_length=1, description="Test sets that the sentence is chosen from")
    decoding: DecodingName = Field(description="Named decoding of the paper that owns the systems")
    words: tuple[CountOrNone, CountOrNone] = Field(
        strict=False, description="Fewest and most source words of the sentence"
    )


class TranscriptTable(Closed):
    """A table of what systems write down of a few utterances.

    They are the utterances of enough words on which one system makes most word errors; of equals the first.
    """

    caption: str = Field(description="Stands alone: what is shown, of what, and how it was chosen")
    printed: FileName = Field(description="CSV of the printed texts, beside paper.yaml")
    dataset: DatasetName = Field(description="Dataset that the systems are trained on, as the paper names it")
    scored_on: DatasetName = Field(description="Dataset whose utterances are shown")
    split: ScoredSplit = Field(description="Split whose utterances are shown")
    decoding: DecodingName = Field(description="Named decoding")
    chosen_by: SystemName = Field(description="System on whose word errors the choice of utterances depends")
    least_words: Count = Field(description="Words that an utterance has at least")


class LayerCosts(Closed):
    """A table of complexities, with the time of each layer type measured beside it."""

    caption: str = Field(description="Stands alone: what is measured, of what")
    printed: FileName = Field(description="CSV of printed complexities, beside paper.yaml")


class Deviation(Closed):
    """Where we do something else than the paper, or had to choose."""

    systems: list[SystemPattern] = Field(description="Systems it concerns; `*` = all")
    paper: str = Field(description="What the paper does or says")
    here: str = Field(description="What is done here")
    why: str = Field(description="The reason")
    changes: list[Changed] = Field(
        default=[], description="What is another than the paper's, so that numbers can't be compared; none = they can"
    )

    def concerns(self, systems: set[str]) -> bool:
        """Whether it is about one of some systems."""
        return bool(systems) and ("*" in self.systems or not systems.isdisjoint(self.systems))


class Paper(Closed):
    """One paper as data."""

    title: str
    authors: str
    year: int = Field(ge=1900, le=2200)
    arxiv: str | None = Field(default=None, description="Number at arXiv; null = a comparison of one's own")
    question: str | None = Field(default=None, description="What a reader wants to know, as one question")
    as_published: bool = Field(
        default=False,
        description="Recipes of others at their own size: no rule of a scale changes them, and `all` leaves them out",
    )
    systems: dict[NewName, SystemEntry] = Field(description="Every system the authors ran")
    decodings: dict[NewName, DecodingEntry] = Field(description="Named ways of decoding")
    tables: dict[NewName, TableEntry] = Field(description="Every printed table that is measured")
    layer_costs: dict[NewName, LayerCosts] = Field(default={}, description="Tables of complexities, measured on layers")
    examples: dict[NewName, Examples] = Field(default={}, description="Tables of a sentence, translated by each system")
    transcripts: dict[NewName, TranscriptTable] = Field(default={}, description="Tables of a few transcripts")
    figures: dict[NewName, AnyFigure] = Field(default={}, description="Every figure that is drawn from runs")
    readings: dict[NewName, Reading] = Field(default={}, description="Open passages, and how each may be understood")
    deviations: list[Deviation] = Field(default=[], description="Printed below the tables")


def load_paper(folder: Path) -> tuple[Paper, dict[str, list[Row]]]:
    """A paper and the rows of its printed tables.

    Raises:
        UserError: an unknown key, a bad value, or a table whose columns are not those that paper.yaml names.
    """
    path = folder / "paper.yaml"
    paper = validate(Paper, load_yaml(path), str(path))
    printed = paper.tables | paper.layer_costs | paper.examples | paper.transcripts
    files = {name: folder / table.printed for name, table in printed.items()}
    rows = {name: read_table(file) for name, file in files.items()}
    for name, table in paper.tables.items():
        check_cells(table, rows[name], files[name])
    for name in paper.examples:
        require_columns({"item", "text", "source", "system"}, rows[name], files[name])
    for name in paper.transcripts:
        require_columns({"example", "model", "prediction", "source", "system"}, rows[name], files[name])
    return paper, rows


def read_table(path: Path) -> list[Row]:
    """Rows of a printed table; every row has every column. Raises UserError naming file and line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UserError(f"{path}: no such file") from error
    except ValueError as error:
        raise UserError(f"{shown(str(path))}: is not UTF-8") from error
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    rows = []
    try:
        for row in reader:
            if None in row or None in row.values():
                raise UserError(f"{path}: line {reader.line_num} has not {len(reader.fieldnames or [])} cells")
            rows.append(row)
    except csv.Error as error:
        raise UserError(f"{path}: line {reader.line_num}: not valid CSV: {error}") from error
    return rows


def check_cells(table: TableEntry, rows: list[Row], path: Path) -> None:
    """Raises UserError when a printed column is missing, or a cell does not fit the rows or the other cells."""
    named = {*table.label, *table.settings, *table.printed_metrics, "source"}
    require_columns(named.union(*(cell.columns() for cell in table.cells.values())), rows, path)
    for name, cell in table.cells.items():
        if faults := list(filter(None, cell.faults(rows, table.cells, f"{path}: cells.{name}"))):
            raise UserError("\n".join(faults))
        for number, row in enumerate(rows, start=2):
            validate(float, cell.printed_in(row) or 0, f"{path}: line {number}: {cell.printed}")


def require_columns(named: set[str], rows: list[Row], path: Path) -> None:
    """Raises UserError when there are no rows, a column is missing, or a source is unknown."""
    if not rows:
        raise UserError(f"{path}: no rows")
    if missing := sorted(named - set(rows[0])):
        hints = "".join(nearest(name, rows[0]) for name in missing)
        raise UserError(f"{path}: no column {one_line(', '.join(missing))}; it has {', '.join(rows[0])}{hints}")
    for number, row in enumerate(rows, start=2):
        validate(Source, row["source"], f"{path}: line {number}: source")
