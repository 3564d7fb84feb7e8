"""Text files and tables of tab-separated values, as stages write and users provide them.

Text is UTF-8 with a line feed at the end of each line. Spreadsheets put some cells in quotation marks and double those
inside, as in `"He answered ""no""."`; other tables hold the text as it is. A table does not declare its quoting, so its
cells decide.
"""

import csv
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pipeline.core.errors import UserError, count_of
from pipeline.core.files import read_errors

log = logging.getLogger(__name__)


def lines_of(path: Path, otherwise: str) -> Iterator[str]:
    """Yield the lines of the UTF-8 file `path` without their ends; `otherwise` is the remedy if it is missing.

    Raises:
        UserError: The file is missing, unreadable, or not UTF-8.
    """
    try:
        with read_errors(otherwise), open(path, encoding="utf-8-sig", newline="\n") as lines:
            yield from (line.removesuffix("\n") for line in lines)
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is not UTF-8 ({error.reason}); save it as UTF-8") from error


def read_lines(path: Path, expected: int | None = None) -> list[str]:
    """Return the lines of a UTF-8 text `path`, split at line feeds only; None `expected` accepts any number.

    Raises:
        UserError: The file is missing, not UTF-8, or has another number of lines.
    """
    lines = list(lines_of(path, "create it again"))
    if expected not in (None, len(lines)):
        raise UserError(
            f"{path}: {count_of(len(lines), 'line')}, but the test set has {expected}; the file is incomplete or the "
            "wrong one"
        )
    return lines


def count_lines(path: Path, otherwise: str) -> int:
    """Return the number of lines of `path`; `otherwise` is the remedy if it is missing.

    Raises:
        UserError: The file is missing or unreadable.
    """
    with read_errors(otherwise), open(path, "rb") as lines:
        return sum(1 for _ in lines)


Row = tuple[int, list[str]]
"""Number of the first line of a row, from 1, and its cells."""
QUOTE = '"'


class Quoting(NamedTuple):
    """Evidence in the cells of a table for quotation marks of a spreadsheet."""

    certain: list[int]
    """Lines with a quoted cell that has doubled quotation marks inside."""
    possible: list[int]
    """Lines with a cell that only begins and ends with a quotation mark."""
    contradicting: list[int]
    """Lines with a cell that a spreadsheet would quote differently."""


def read_rows(lines: Iterable[str], where: str, level: int = logging.WARNING) -> list[Row]:
    """Return the rows of `lines`, split at tabs, without the quotation marks of a spreadsheet, which are logged.

    Args:
        lines: Lines with or without their ends.
        where: The file, for the log.
        level: Level of the log; lower where quotation marks are no text, as in transcripts.
    """
    texts = ["\t".join(map(trimmed, line.rstrip("\r\n").split("\t"))) for line in lines]
    plain = [(number, text.split("\t")) for number, text in enumerate(texts, start=1)]
    found = quoting(plain)
    if not (found.certain or found.possible):
        return plain
    whole = parsed(texts)
    every_cell = all(is_quoted(cell) for _, row in plain for cell in row if cell)
    if (
        whole is not None
        and (found.certain or every_cell or any_break(plain))
        and (not found.contradicting or any_break(plain))
    ):
        first = min([*found.certain, *found.possible])
        log.log(level, "%s: removed the quotation marks of a spreadsheet, the first on line %d", where, first)
        return whole
    if found.certain:
        log.log(
            level,
            "%s: removed the quotation marks of a spreadsheet, e.g. on line %d, but kept others, e.g. on line %d",
            *(where, found.certain[0], (found.contradicting or found.possible or found.certain)[0]),
        )
        return [(number, [unquoted(cell) if is_certain(cell) else cell for cell in row]) for number, row in plain]
    log.log(
        level,
        "%s: line %d keeps the quotation marks around a cell; remove them if a spreadsheet added them",
        *(where, found.possible[0]),
    )
    return plain


def quoting(rows: list[Row]) -> Quoting:
    """Collect the evidence of all cells."""
    found = Quoting([], [], [])
    for number, row in rows:
        for cell in row:
            if QUOTE in cell:
                kind = (
                    found.certain
                    if is_certain(cell)
                    else found.possible
                    if is_quoted(cell.strip(" "))
                    else found.contradicting
                )
                kind.append(number)
    return found


def trimmed(cell: str) -> str:
    """Return a cell without the spaces around quotation marks that a spreadsheet certainly added."""
    inner = cell.strip(" ")
    return inner if is_certain(inner) else cell


def is_quoted(cell: str) -> bool:
    """Return whether a cell is quoted and all quotation marks inside are doubled."""
    return len(cell) > 1 and cell[0] == cell[-1] == QUOTE and QUOTE not in cell[1:-1].replace(QUOTE * 2, "")


def is_certain(cell: str) -> bool:
    """Return whether a cell is quoted and has doubled quotation marks inside."""
    return is_quoted(cell) and QUOTE in cell[1:-1]


def unquoted(cell: str) -> str:
    """Return a cell without its outer quotation marks, those inside single."""
    return cell[1:-1].replace(QUOTE * 2, QUOTE)


def parsed(lines: list[str]) -> list[Row] | None:
    """Parse a table of quoted cells, breaks in cells as spaces; return None if that fails."""
    reader = csv.reader((f"{line}\n" for line in lines), delimiter="\t", strict=True)
    rows: list[Row] = []
    begin = 1
    try:
        for row in reader:
            rows.append((begin, [" ".join(cell.split()) if set(cell) & {"\n", "\t"} else cell for cell in row]))
            begin = reader.line_num + 1
    except csv.Error:
        return None
    filled = [row for row in rows if row[1]]
    return filled if len({len(row) for _, row in filled}) == 1 else None


def any_break(plain: list[Row]) -> bool:
    """Return whether the `plain` lines, split at tabs, differ in width, as if a cell holds a line break or tab.

    Lines of equal width are rows, even if a quotation begins in one and ends in another.
    """
    return len({len(row) for _, row in plain if row != [""]}) > 1
