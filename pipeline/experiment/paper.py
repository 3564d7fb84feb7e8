"""The records of `workflow/papers/<paper>/paper.yaml` and of the printed tables beside it."""

import csv
import io
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from pipeline.config import DecodingSettings
from pipeline.errors import UserError
from pipeline.experiment.figure import FigureEntry
from pipeline.kinds.names import (
    DatasetName,
    DecodingName,
    NewName,
    ScaleName,
    SystemName,
    SystemPattern,
    TrainedName,
)
from pipeline.kinds.scored import ScoredSplit, ScoredSplits
from pipeline.schema import Closed, Count, known, load_yaml, nearest, validate
from pipeline.yaml_file import one_line, shown

FileName = Annotated[str, Field(pattern=r"^[\w.-]+$", max_length=100)]
Source = Literal["ours-to-run", "cited", "analytic", "input", "reference"]


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


class MeasuredCell(ScoredSplits):
    """A measured column: which score stands next to which printed column."""

    printed: str | None = Field(default=None, description="Column of the printed table; null = the paper printed none")
    decoding: DecodingName | None = Field(default=None, description="Named decoding of the paper that owns the system")
    decoding_column: str | None = Field(
        default=None, description="Column that names each row's decoding instead; several names are averaged"
    )
    system: str = Field(default="system", description="Column of the printed table that names the system")

    @model_validator(mode="after")
    def one_decoding(self):
        if (self.decoding is None) == (self.decoding_column is None):
            raise ValueError("needs one of decoding and decoding_column")
        return self

    def decodings_of(self, row: dict[str, str]) -> list[str]:
        return [self.decoding] if self.decoding else row[self.decoding_column].split()


class FactCell(Closed):
    """A column about the training rather than its score."""

    printed: str | None = Field(default=None, description="Column of the printed table; null = the paper printed none")
    kind: Literal["parameters", "flops", "flops_by_time", "fit"] = Field(
        description="What is reported: parameters; operations counted from the model, or as the paper has them, time x "
        "devices x sustained single-precision rate; or the perplexity of training data without dropout"
    )
    dataset: DatasetName = Field(description="Dataset of the run it is read from")
    unit: Annotated[float, Field(gt=0, strict=False)] = Field(default=1, description="Printed value x unit = ours")
    system: str = Field(default="system", description="Column of the printed table that names the system")


class SizeCell(Closed):
    """The trainable parameters of a row's system as the paper has it, whatever the scale: its printed settings."""

    printed: str | None = Field(default=None, description="Column of the printed table; null = the paper printed none")
    kind: Literal["size"]
    vocab: Count = Field(description="Rows of the embeddings")
    vocab_of: dict[SystemName, Count] = Field(default={}, description="The same for single systems")
    why: str = Field(description="Where these numbers are from; stands below the table")
    unit: Annotated[float, Field(gt=0, strict=False)] = Field(default=1, description="Printed value x unit = ours")
    system: str = Field(default="system", description="Column of the printed table that names the system")


class ScoreCell(MeasuredCell):
    """The score itself."""

    kind: Literal["score"] = "score"


class GapCell(MeasuredCell):
    """How far a system's word error rate lies from a target-trained one, of the way to a source-trained one, in %."""

    kind: Literal["domain_gap"]
    source_trained: SystemName = Field(description="System at 100 %")
    target_trained: SystemName = Field(description="System at 0 %")
    ends_decoding: DecodingName = Field(description="Named decoding of those two")

    @property
    def ends(self) -> tuple[str, str]:
        return self.source_trained, self.target_trained


class GainCell(Closed):
    """By how much a row's score exceeds that of another row."""

    printed: str | None = Field(default=None, description="Column of the printed table; null = the paper printed none")
    kind: Literal["gain"]
    cell: str = Field(description="Score of this table that is compared")
    over: SystemName = Field(description="System of the other row")


class TableEntry(Closed):
    """A printed table and what is measured for it."""

    scales: list[ScaleName] | None = Field(default=None, description="Scales at which it can be measured; null = all")
    caption: str = Field(description="Stands alone: what is measured, on what, by whom")
    printed: FileName = Field(description="CSV of printed numbers, beside paper.yaml")
    label: list[str] = Field(description="Columns that name a row")
    settings: list[str] = Field(default=[], description="Columns that show a row's settings in the paper's symbols")
    cells: dict[
        NewName, Annotated[ScoreCell | GapCell | FactCell | SizeCell | GainCell, Field(discriminator="kind")]
    ] = Field(description="Measured columns")

    @property
    def run_cells(self) -> dict[str, ScoreCell | GapCell | FactCell]:
        """Columns that are read from runs; the others follow from them."""
        return {name: cell for name, cell in self.cells.items() if not isinstance(cell, GainCell | SizeCell)}

    @model_validator(mode="after")
    def gains_name_scores(self):
        for name, cell in self.cells.items():
            if isinstance(cell, GainCell) and not isinstance(self.cells.get(cell.cell), ScoreCell):
                raise ValueError(f"cells.{name}.cell: no score {cell.cell!r} in this table")
        return self


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
    words: tuple[int, int] = Field(strict=False, description="Fewest and most source words of the sentence")


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
    least_words: Annotated[int, Field(ge=1)] = Field(description="Words that an utterance has at least")


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


class Paper(Closed):
    """One paper as data."""

    title: str
    authors: str
    year: int
    arxiv: str
    systems: dict[NewName, SystemEntry] = Field(description="Every system the authors ran")
    decodings: dict[NewName, DecodingEntry] = Field(description="Named ways of decoding")
    tables: dict[NewName, TableEntry] = Field(description="Every printed table that is measured")
    layer_costs: dict[NewName, LayerCosts] = Field(default={}, description="Tables of complexities, measured on layers")
    examples: dict[NewName, Examples] = Field(
        default={}, description="Tables of one sentence, translated by each system"
    )
    transcripts: dict[NewName, TranscriptTable] = Field(
        default={}, description="Tables of a few utterances' transcripts"
    )
    figures: dict[NewName, FigureEntry] = Field(default={}, description="Every figure that is drawn from runs")
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
    for name, example in paper.examples.items():
        rows[name] = read_table(folder / example.printed)
        require_columns({"item", "text", "source", "system"}, rows[name], folder / example.printed)
    for name, transcripts in paper.transcripts.items():
        rows[name] = read_table(folder / transcripts.printed)
        needed = {"example", "model", "prediction", "source", "system"}
        require_columns(needed, rows[name], folder / transcripts.printed)
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


def check_columns(table: TableEntry, rows: list[Row], path: Path) -> None:
    named = {
        *table.label,
        *table.settings,
        *(cell.printed for cell in table.cells.values() if cell.printed),
        *(cell.system for cell in table.cells.values() if not isinstance(cell, GainCell)),
        *(cell.decoding_column for cell in table.cells.values() if getattr(cell, "decoding_column", None)),
    }
    require_columns(named | {"source"}, rows, path)
    for name, cell in table.cells.items():
        if isinstance(cell, GainCell):
            known(cell.over, {row[table.cells[cell.cell].system] for row in rows}, f"{path}: cells.{name}.over")
        for system in cell.vocab_of if isinstance(cell, SizeCell) else ():
            known(system, {row[cell.system] for row in rows}, f"{path}: cells.{name}.vocab_of")


def require_columns(named: set[str], rows: list[Row], path: Path) -> None:
    """Raises UserError when there are no rows, a column is missing, or a source is unknown."""
    if not rows:
        raise UserError(f"{path}: no rows")
    if missing := sorted(named - set(rows[0])):
        hints = "".join(nearest(name, rows[0]) for name in missing)
        raise UserError(f"{path}: no column {one_line(', '.join(missing))}; it has {', '.join(rows[0])}{hints}")
    for number, row in enumerate(rows, start=2):
        validate(Source, row["source"], f"{path}: line {number}: source")
