"""Reader of word tables: text files beside this one with several tables each.

    == NAME | COLUMN | COLUMN
    cell | cell

Each row has a cell for each column; cells can be empty. A line that starts with # is a comment.
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
    """A table of words.

    Attributes:
        columns: Names of the columns.
        rows: Cells of each row, by file and line.
    """

    columns: list[str]
    rows: dict[str, list[str]] = field(default_factory=dict)

    def add(self, where: str, cells: list[str]) -> None:
        """Add a row.

        Args:
            where: File and line, for messages.
            cells: Its cells.

        Raises:
            UserError: The row has too few or too many cells.
        """
        if len(cells) != len(self.columns):
            raise UserError(f"{where}: {len(cells)} cells, expected {len(self.columns)}: {' | '.join(self.columns)}")
        self.rows[where] = cells

    def each(self, make: Callable[..., Item]) -> list[Item]:
        """Convert each row by calling `make` with its cells.

        Args:
            make: Function of the cells of a row.

        Returns:
            The results in order.

        Raises:
            UserError: A row can't be converted.
        """
        made = []
        for where, cells in self.rows.items():
            try:
                made.append(make(*cells))
            except (ValueError, LookupError) as error:
                raise UserError(f"{where}: can't be read ({error!r}): {' | '.join(cells)}") from error
        return made

    @property
    def words(self) -> tuple[str, ...]:
        """Return all words of a table with one column."""
        return tuple(word for line in self.each(str.split) for word in line)


def read_tables(name: str) -> dict[str, Table]:
    """Read the tables of `<name>.txt` by name.

    Args:
        name: File name without its suffix.

    Returns:
        The tables by name.

    Raises:
        UserError: A row has too few or too many cells, or precedes all tables.
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
