"""Markdown of reports beside their CSV, with every text of the data escaped."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.core.files import atomic_write
from pipeline.core.json_csv import write_csv

if TYPE_CHECKING:
    from pandas import DataFrame

LINE_ENDS = re.compile(r"[\x00-\x08\n-\x1f\x7f-\x9f\u2028\u2029]+")
"""Line ends and control characters."""
MARKUP = re.compile(
    r"\\(?=[!-/:-@\[-`{-~]|$)"  # a backslash that would hide the next character, or what follows the text
    r"|[|`*~$]"  # cells, code, emphasis, struck out, mathematics
    r"|\](?=\()"  # links; not intervals, as in [0.1, 0.2]
    r"|(?<![^\W_])_|_(?![^\W_])"  # emphasis; not within a name, as in dev_loss
    r"|<(?=[A-Za-z/!?])"  # HTML, and addresses
    r"|&(?=#?\w+;)"  # a character by its name, as `&quot;`
)


BLOCK = re.compile(r"^(?=[#>+=\[-])|(?<=^)(?P<number>\d{1,9})(?=[.)](\s|$))")
"""Beginnings that would make a paragraph a heading, list, quote or rule."""


def literal(text: str) -> str:
    """Return a text on one line with a backslash before each character that would be markup."""
    return MARKUP.sub(r"\\\g<0>", LINE_ENDS.sub(" ", text))


def shortened(text: str, longest: int) -> str:
    """Return a `text`, cut to at most `longest` characters."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def plain(text: str) -> str:
    """Undo `literal` and `prose`, except for line ends."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text)


def prose(text: str) -> str:
    """Return a text as a paragraph: literal, and no heading, list or quote."""
    return BLOCK.sub(lambda found: f"{found[0]}\\", literal(text.strip()))


def readable(value: float) -> str:
    """Return a number with four digits, or all digits before its decimal point."""
    return f"{value:.4g}" if abs(value) < 9999.5 else f"{value:.0f}"  # `.4g` would write 1e+04


def paragraphs(*parts: str) -> str:
    """Join paragraphs."""
    return "\n\n".join(parts) + "\n"


def grid(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with aligned columns of a `header` and escaped cells `rows`, without empty columns."""
    columns = [column for column in zip(header, *rows, strict=True) if any(column[1:])]
    lines = zip(*(aligned([literal(cell) for cell in column]) for column in columns), strict=True)
    return "\n".join(f"|{'|'.join(line)}|" for line in lines)


def aligned(column: Sequence[str]) -> list[str]:
    """Return heading, rule and cells of a column in one width; numbers are right-aligned."""
    width = max(map(len, column))
    numeric = all(cell[0] in "0123456789.-–+" for cell in column[1:] if cell)
    heading, *cells = (f" {cell.rjust(width) if numeric else cell.ljust(width)} " for cell in column)
    return [heading, "-" * (width + 1) + (":" if numeric else "-"), *cells]


def write_report(csv: Path, rows: "DataFrame | Sequence[dict[str, Any]]", text: str, texts: Sequence[str] = ()) -> None:
    """Write `rows` as the file `csv`, and `text` as a Markdown file beside it; `texts` as for `write_csv`."""
    write_csv(csv, rows, texts=texts)
    with atomic_write(csv.with_suffix(".md")) as handle:
        handle.write(text)
