"""Reads the tables of words: text files beside this one, several tables a file.

    == NAME | COLUMN | COLUMN
    cell | cell

Each row has a cell, perhaps an empty one, for each column. A line that begins with # is a comment.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pipeline.core.errors import UserError

Item = TypeVar("Item")
HEADER = "== "


@dataclass(frozen=True)
class Table:
    """The cells of each row, by the place where it is written."""

    columns: list[str]
    rows: dict[str, list[str]] = field(default_factory=dict)

    def add(self, where: str, cells: list[str]) -> None:
        if len(cells) != len(self.columns):
            raise UserError(f"{where}: {len(cells)} cells, expected {len(self.columns)}: {' | '.join(self.columns)}")
        self.rows[where] = cells

    def each(self, make: Callable[..., Item]) -> list[Item]:
        """What `make` makes of the cells of each row. Raises UserError, naming the row, where it can't."""
        made = []
        for where, cells in self.rows.items():
            try:
                made.append(make(*cells))
            except (ValueError, LookupError) as error:
                raise UserError(f"{where}: can't be read ({error!r}): {' | '.join(cells)}") from error
        return made

    @property
    def words(self) -> tuple[str, ...]:
        """All words of a table of one column."""
        return tuple(word for line in self.each(str.split) for word in line)


def read_tables(name: str) -> dict[str, Table]:
    """The tables of `<name>.txt` by name.

    Raises:
        UserError: a row has not as many cells as its table has columns, or stands before any table.
    """
    path = Path(__file__).with_name(f"{name}.txt")
    tables: dict[str, Table] = {}
    table = Table([])
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        cells = [cell.strip() for cell in line.removeprefix(HEADER).split("|")]
        if line.startswith(HEADER):
            table = tables[cells[0]] = Table(cells[1:])
        elif line.strip() and not line.startswith("#"):
            table.add(f"{path}: line {number}", cells)
    return tables
