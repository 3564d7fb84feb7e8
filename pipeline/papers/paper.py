"""Records of `workflow/papers/<paper>/paper.yaml` and of the printed tables beside it."""

import csv
import io
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from pipeline.analysis import reference_types as refs
from pipeline.analysis.cells import AnyCell
from pipeline.analysis.cells.cell import Row
from pipeline.analysis.figures import AnyFigure
from pipeline.config import DecodingSettings
from pipeline.core.artifacts import TRAINING
from pipeline.core.errors import UserError, one_line, shown
from pipeline.core.schema import Closed, Count, CountOrNone, load_yaml_as, nearest, validate
from pipeline.papers.reading import Reading

FileName = Annotated[str, Field(pattern=r"^[\w.-]+$", max_length=100)]
Source = Literal["ours-to-run", "cited", "analytic", "input", "reference"]
Changed = Literal["test set", "metric", "model", "data", "budget"]


class SystemEntry(Closed):
    """Model and recipe of a table row, written as differences from another system."""

    base: refs.SystemName | None = Field(
        default=None, description="System that it is based on: `name`, or `paper/name` of another paper"
    )
    description: str = Field(description="Meaning of the row, in the paper's words or symbols")
    datasets: dict[refs.DatasetName, refs.DatasetName] = Field(
        default={}, description="Datasets that replace those named by tables, e.g. ones with more training data"
    )
    model: dict[str, Any] = Field(default={}, description="Keys of the model section that differ")
    fusion: dict[str, Any] = Field(default={}, description="Keys of the fusion section that differ; none = no fusion")
    language_model: refs.TrainedName | None = Field(
        default=None,
        description="Language model that is fused, of the same seed: `system@dataset` or `paper/system@dataset`",
    )
    initial: refs.TrainedName | None = Field(
        default=None, description="System whose weights initialise the training, written like `language_model`"
    )
    training: dict[str, Any] = Field(default={}, description="Keys of the training section that differ")
    decodings: dict[refs.DecodingName, dict[str, Any]] = Field(
        default={}, description="Keys that differ, by name of a decoding"
    )


class DecodingEntry(DecodingSettings):
    """A named decoding, written as differences from another one."""

    base: str | None = Field(
        default=None, description="Decoding that it is based on: `name`, or `paper/name` of another paper"
    )

    @property
    def differences(self) -> dict[str, Any]:
        """Return the settings that the entry gives."""
        return self.model_dump(exclude_unset=True, exclude={"base"})


def _with_kinds(cells: Any) -> Any:
    """Add the default kind, score, to cells without a kind."""
    if not isinstance(cells, dict):
        return cells
    return {name: {"kind": "score", **cell} if isinstance(cell, dict) else cell for name, cell in cells.items()}


class TableEntry(Closed):
    """A printed table with its measured columns."""

    scales: list[refs.ScaleName] | None = Field(
        default=None, description="Scales at which the table can be measured; null = all"
    )
    on_request: bool = Field(
        default=False, description="Build the table only if its file is requested, because it needs the user's own data"
    )
    caption: str = Field(description="Self-contained caption: what is measured, on which data, by whom")
    printed: FileName = Field(description="CSV of printed numbers, beside paper.yaml")
    label: list[str] = Field(description="Columns that name a row")
    settings: list[str] = Field(default=[], description="Columns that show a row's settings in the paper's symbols")
    cells: Annotated[dict[refs.NewName, AnyCell], BeforeValidator(_with_kinds)] = Field(description="Measured columns")
    printed_metrics: dict[str, refs.MetricName] = Field(
        default={}, description="Metric of each printed column; only scores of the same metric are comparable"
    )


class Examples(Closed):
    """A table of one sentence with every system's translation of it.

    The sentence has a length in a range, and the systems' sentence BLEU has the largest standard deviation. The
    first of several such sentences is taken. The rule does not depend on the names of systems.
    """

    caption: str = Field(description="Self-contained caption: what is shown, and how the sentence was chosen")
    printed: FileName = Field(description="CSV of the printed sentence, beside paper.yaml")
    dataset: refs.DatasetName = Field(description="Dataset as the paper names it; the scale names its stand-in")
    splits: list[refs.ScoredSplit] = Field(min_length=1, description="Test sets from which the sentence is chosen")
    decoding: refs.DecodingName = Field(description="Named decoding of the paper that owns the systems")
    words: tuple[CountOrNone, CountOrNone] = Field(
        strict=False, description="Minimum and maximum number of source words of the sentence"
    )


class TranscriptTable(Closed):
    """A table of transcripts of a few utterances by several systems.

    The utterances have enough words, and one system makes the most word errors on them. Ties go to the first.
    """

    caption: str = Field(description="Self-contained caption: what is shown, and how the utterances were chosen")
    printed: FileName = Field(description="CSV of the printed texts, beside paper.yaml")
    dataset: refs.DatasetName = Field(description="Dataset that the systems are trained on, as the paper names it")
    scored_on: refs.DatasetName = Field(description="Dataset whose utterances are shown")
    split: refs.ScoredSplit = Field(description="Split whose utterances are shown")
    decoding: refs.DecodingName = Field(description="Named decoding")
    chosen_by: refs.SystemName = Field(description="System whose word errors decide which utterances are shown")
    least_words: Count = Field(description="Minimum number of words of an utterance")


class LayerCosts(Closed):
    """A table of complexities, with the time of each layer type measured beside it."""

    caption: str = Field(description="Self-contained caption: what is measured, of which layers")
    printed: FileName = Field(description="CSV of printed complexities, beside paper.yaml")


class Deviation(Closed):
    """A deviation from the paper, or a choice that it leaves open."""

    systems: list[refs.SystemPattern] = Field(description="Systems that it concerns; `*` = all")
    paper: str = Field(description="What the paper does or says")
    here: str = Field(description="What is done here")
    why: str = Field(description="The reason")
    changes: list[Changed] = Field(
        default=[],
        description="Things that it changes, so that numbers are not comparable; empty = they stay comparable",
    )

    def concerns(self, systems: set[str]) -> bool:
        """Return whether the deviation concerns one of some systems."""
        return bool(systems) and ("*" in self.systems or not systems.isdisjoint(self.systems))


class Paper(Closed):
    """One paper as data."""

    title: str = Field(description="Title of the paper")
    authors: str = Field(description="Authors, as printed")
    year: int = Field(ge=1900, le=2200, description="Year of publication")
    arxiv: str | None = Field(default=None, description="arXiv number; null = a comparison of your own")
    question: str | None = Field(default=None, description="Question of a reader that the paper answers")
    as_published: bool = Field(
        default=False,
        description="Recipes published by others: rules of scales do not change them, and `all` leaves them out",
    )
    systems: dict[refs.NewName, SystemEntry] = Field(description="Every system the authors ran")
    decodings: dict[refs.NewName, DecodingEntry] = Field(description="Named decodings")
    tables: dict[refs.NewName, TableEntry] = Field(description="Every printed table that is measured")
    layer_costs: dict[refs.NewName, LayerCosts] = Field(
        default={}, description="Tables of complexities with measured times of layers"
    )
    examples: dict[refs.NewName, Examples] = Field(
        default={}, description="Tables of one sentence, translated by each system"
    )
    transcripts: dict[refs.NewName, TranscriptTable] = Field(default={}, description="Tables of a few transcripts")
    figures: dict[refs.NewName, AnyFigure] = Field(default={}, description="Every figure that is drawn from runs")
    readings: dict[refs.NewName, Reading] = Field(
        default={}, description="Ambiguous passages with their interpretations"
    )
    deviations: list[Deviation] = Field(default=[], description="Printed below the tables")

    @property
    def printed_tables(self) -> "dict[str, TableEntry | LayerCosts | Examples | TranscriptTable]":
        """Return all entries with a CSV of printed numbers or texts, by name."""
        return self.tables | self.layer_costs | self.examples | self.transcripts

    @model_validator(mode="after")
    def reports_have_names_of_their_own(self):
        """Refuse two reports of one name, whose files would be the same."""
        owners = {"claims": "claims.yaml"}
        for section in ("tables", "layer_costs", "examples", "transcripts", "figures"):
            for name in getattr(self, section):
                if name in owners:
                    raise ValueError(f"{section}.{name}: {owners[name]} has a report of this name; choose another")
                owners[name] = section
        return self

    @model_validator(mode="after")
    def decodings_leave_a_name_free(self):
        """Refuse a decoding whose name stands for outputs without a search, which would ignore its settings."""
        if TRAINING in self.decodings:
            raise ValueError(f"decodings.{TRAINING}: this name has another meaning in run folders; choose another")
        return self


def load_paper(folder: Path) -> tuple[Paper, dict[str, list[Row]]]:
    """Return a paper, and the rows of each printed table.

    Raises:
        UserError: A key is unknown, a value is bad, or a printed table lacks a column that paper.yaml names.
    """
    path = folder / "paper.yaml"
    paper = load_yaml_as(Paper, path)
    files = {name: folder / table.printed for name, table in paper.printed_tables.items()}
    rows = {name: read_table(file) for name, file in files.items()}
    for name, table in paper.tables.items():
        _check_cells(table, rows[name], files[name])
    for name in paper.examples:
        require_columns({"item", "text", "source", "system"}, rows[name], files[name])
    for name in paper.transcripts:
        require_columns({"example", "model", "prediction", "source", "system"}, rows[name], files[name])
    return paper, rows


def read_table(path: Path) -> list[Row]:
    """Return the rows of a printed table as texts by column; every row has every column.

    Raises:
        UserError: The file is missing, is not UTF-8 or not valid CSV, or a row has too few or too many cells.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UserError(f"{path}: no such file") from error
    except ValueError as error:
        raise UserError(f"{shown(str(path))}: is not UTF-8; save it as UTF-8") from error
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    rows = []
    try:
        columns = reader.fieldnames or []
        if twice := [name for name, count in Counter(columns).items() if name and count > 1]:
            raise UserError(f"{path}: two columns are named {one_line(twice[0])}; rename or remove one")
        for row in reader:
            if None in row or None in row.values():
                raise UserError(f"{path}: line {reader.line_num}: expected {len(columns)} cells")
            rows.append(row)
    except csv.Error as error:
        raise UserError(f"{path}: line {reader.line_num}: not valid CSV: {error}") from error
    return rows


def _check_cells(table: TableEntry, rows: list[Row], path: Path) -> None:
    """Check the measured columns of a table against its printed rows.

    Raises:
        UserError: A printed column is missing, or a cell does not fit the rows or the other cells.
    """
    named = {*table.label, *table.settings, *table.printed_metrics, "source"}
    require_columns(named.union(*(cell.columns() for cell in table.cells.values())), rows, path)
    for name, cell in table.cells.items():
        if faults := list(filter(None, cell.faults(rows, table.cells, f"{path}: cells.{name}"))):
            raise UserError("\n".join(faults))
        for number, row in enumerate(rows, start=2):
            if printed := cell.printed_in(row):
                validate(float, printed, f"{path}: line {number}: {cell.printed}")


def require_columns(named: set[str], rows: list[Row], path: Path) -> None:
    """Check that the printed table in `path` has `rows`, the columns `named`, and known sources.

    Raises:
        UserError: There are no rows, a column is missing, or a source is unknown.
    """
    if not rows:
        raise UserError(f"{path}: no rows")
    if missing := sorted(named - set(rows[0])):
        hints = "".join(nearest(name, rows[0]) for name in missing)
        raise UserError(f"{path}: no column {one_line(', '.join(missing))}; it has {', '.join(rows[0])}{hints}")
    for number, row in enumerate(rows, start=2):
        validate(Source, row["source"], f"{path}: line {number}: source")
