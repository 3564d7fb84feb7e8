"""The records of `workflow/papers/<paper>/paper.yaml` and of the printed tables beside it."""

import csv
import io
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from pipeline.config import Closed, DecodingConfig, load_yaml, validate
from pipeline.errors import UserError
from pipeline.experiment.figure import FigureEntry

Source = Literal["ours-to-run", "cited", "analytic"]


def score_path(metric: str, decoding: str, split: str) -> str:
    """Where a score lies in a run's folder."""
    return f"{'perplexities' if metric == 'perplexity' else 'scores'}/{decoding}/{split}.json"


class SystemEntry(Closed):
    """A table row's model and recipe, written as differences from another system."""

    base: str | None = Field(
        default=None, description="System it differs from: `name`, or `paper/name` of another paper"
    )
    description: str = Field(description="What the row stands for, in the paper's words or symbols")
    datasets: dict[str, str] = Field(
        default={}, description="Dataset it is run on by the one that a table names, e.g. one with more training data"
    )
    model: dict[str, Any] = Field(default={}, description="Keys of the model section that differ")
    training: dict[str, Any] = Field(default={}, description="Keys of the training section that differ")
    decodings: dict[str, dict[str, Any]] = Field(default={}, description="Keys that differ, by named decoding")


class ScoreCell(Closed):
    """A measured column: which score stands next to which printed column."""

    printed: str | None = Field(default=None, description="Column of the printed table; null = the paper printed none")
    kind: Literal["score"] = "score"
    metric: str = Field(description="Metric of the score file, e.g. bleu_paper, perplexity")
    dataset: str = Field(description="Dataset as the paper names it; the scale says what stands in for it")
    split: Literal["dev", "test"] = Field(description="Split that is scored")
    decoding: str | None = Field(default=None, description="Named decoding of the paper that owns the system")
    decoding_column: str | None = Field(
        default=None, description="Column that names each row's decoding instead; several names are averaged"
    )
    system: str = Field(default="system", description="Column of the printed table that names the system")

    @model_validator(mode="after")
    def one_decoding(self):
        if (self.decoding is None) == (self.decoding_column is None):
            raise ValueError("needs one of decoding and decoding_column")
        return self

    def file(self, decoding: str) -> str:
        """Where the score lies in a run's folder."""
        return score_path(self.metric, decoding, self.split)

    def decodings_of(self, row: dict[str, str]) -> list[str]:
        return [self.decoding] if self.decoding else row[self.decoding_column].split()


class FactCell(Closed):
    """A column about the training rather than its score."""

    printed: str | None = Field(default=None, description="Column of the printed table; null = the paper printed none")
    kind: Literal["parameters", "flops", "flops_by_time"] = Field(
        description="What is reported: parameters, operations counted from the model, or operations as the paper has "
        "them, time x devices x sustained single-precision rate"
    )
    dataset: str = Field(description="Dataset of the run it is read from")
    unit: Annotated[float, Field(gt=0, strict=False)] = Field(default=1, description="Printed value x unit = ours")
    system: str = Field(default="system", description="Column of the printed table that names the system")


class TableEntry(Closed):
    """A printed table and what is measured for it."""

    caption: str = Field(description="Stands alone: what is measured, on what, by whom")
    printed: str = Field(description="CSV of printed numbers, beside paper.yaml")
    label: list[str] = Field(description="Columns that name a row")
    settings: list[str] = Field(default=[], description="Columns that show a row's settings in the paper's symbols")
    cells: dict[str, Annotated[ScoreCell | FactCell, Field(discriminator="kind")]] = Field(
        description="Measured columns"
    )


class LayerCosts(Closed):
    """A table of complexities, with the time of each layer type measured beside it."""

    caption: str = Field(description="Stands alone: what is measured, of what")
    printed: str = Field(description="CSV of printed complexities, beside paper.yaml")


class Deviation(Closed):
    """Where we do something else than the paper, or had to choose."""

    systems: list[str] = Field(description="Systems it concerns; `*` = all")
    paper: str = Field(description="What the paper does or says")
    here: str = Field(description="What is done here")
    why: str = Field(description="The reason")


class Paper(Closed):
    """One paper as data."""

    title: str
    authors: str
    year: int
    arxiv: str
    systems: dict[str, SystemEntry] = Field(description="Every system the authors ran")
    decodings: dict[str, DecodingConfig] = Field(description="Named ways of decoding")
    tables: dict[str, TableEntry] = Field(description="Every printed table that is measured")
    layer_costs: dict[str, LayerCosts] = Field(default={}, description="Tables of complexities, measured on layers")
    figures: dict[str, FigureEntry] = Field(default={}, description="Every figure that is drawn from runs")
    deviations: list[Deviation] = Field(default=[], description="Printed below the tables")


Row = dict[str, str]


def load_paper(folder: Path) -> tuple[Paper, dict[str, list[Row]]]:
    """A paper and the rows of its printed tables.

    Raises:
        UserError: an unknown key, a bad value, or a table whose columns are not those that paper.yaml names.
    """
    path = folder / "paper.yaml"
    paper = validate(Paper, tag_cells(load_yaml(path)), str(path))
    rows = {name: read_table(folder / table.printed) for name, table in paper.tables.items()}
    for name, table in paper.tables.items():
        check_columns(table, rows[name], folder / table.printed)
    rows |= {name: read_table(folder / table.printed) for name, table in paper.layer_costs.items()}
    return paper, rows


def tag_cells(value: Any) -> Any:
    """Spell out the default kind of a cell, which the schema needs to tell the two records apart."""
    for table in (value.get("tables") or {}).values() if isinstance(value, dict) else ():
        for cell in (table.get("cells") or {}).values() if isinstance(table, dict) else ():
            if isinstance(cell, dict):
                cell.setdefault("kind", "score")
    return value


def read_table(path: Path) -> list[Row]:
    """Rows of a printed table; every row has every column. Raises UserError naming file and line."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    rows = []
    for row in reader:
        if None in row or None in row.values():
            raise UserError(f"{path}: line {reader.line_num} has not {len(reader.fieldnames or [])} cells")
        rows.append(row)
    return rows


def check_columns(table: TableEntry, rows: list[Row], path: Path) -> None:
    if not rows:
        raise UserError(f"{path}: no rows")
    cells = table.cells.values()
    named = {
        *table.label,
        *table.settings,
        *(cell.printed for cell in cells if cell.printed),
        *(cell.system for cell in cells),
    }
    missing = sorted((named | {"source"}) - set(rows[0]))
    if missing:
        raise UserError(f"{path}: no column {', '.join(missing)}; it has {', '.join(rows[0])}")
    for number, row in enumerate(rows, start=2):
        validate(Source, row["source"], f"{path}: line {number}: source")
