"""Write the tables of the pages in docs/measured from the records beside them: python docs/measured_tables.py.

A page names the record of a table in a comment, optionally with rows and columns. The Markdown table is between that
comment and `<!-- end -->`, so that GitHub shows it, too. A test compares each page with its records and finds tables
that come from none.
"""

import csv
import re
import sys
from pathlib import Path

import yaml

MEASURED = Path(__file__).parent / "measured"
TABLE = re.compile(r"(<!-- records\n(.*?)-->\n).*?(<!-- end -->)", re.DOTALL)
FIGURE = re.compile(r"[-+−±]?[0-9]")


def filled(page: Path) -> str:
    """Return the text of a page with every table written again from its records."""

    def table(found: re.Match) -> str:
        return f"{found[1]}\n{markdown(page, yaml.safe_load(found[2]))}\n\n{found[3]}"

    return TABLE.sub(table, page.read_text(encoding="utf-8"))


def markdown(page: Path, wanted: dict) -> str:
    """Write one table.

    Args:
        page: The page, for messages.
        wanted: `file`, a CSV file below docs/measured; `source`, what its figures were taken from, if they are not from
            runs, or `derived`, what they were computed from; `elsewhere`, columns that the source's record lacks;
            `key`, the column that names a row (default `system`); `rows` and `columns`, each from a name in the
            file to what the page calls it. Without them, the whole file is shown.

    Raises:
        SystemExit: The file has no such row or column, or several rows of one name.
    """
    with open(MEASURED / wanted["file"], encoding="utf-8", newline="") as file:
        first, *others = list(csv.reader(file))
    if "rows" not in wanted:
        return whole(first, others)
    records = [dict(zip(first, other, strict=True)) for other in others]
    key = wanted.get("key", "system")
    if unknown := [name for name in (key, *wanted["columns"]) if name not in first]:
        sys.exit(f"{page}: {wanted['file']} has no column {unknown[0]!r}; it has {', '.join(first)}")
    lines = [["", *wanted["columns"].values()], ["---", *["---:"] * len(wanted["columns"])]]
    for name, shown in wanted["rows"].items():
        found = [record for record in records if record[key] == name]
        if len(found) != 1:
            sys.exit(f"{page}: {wanted['file']} has {len(found)} rows whose {key} is {name!r}")
        lines.append([shown, *(found[0][column] for column in wanted["columns"])])
    return joined(lines)


def whole(header: list[str], rows: list[list[str]]) -> str:
    """Write all rows and columns of a file; columns of which most cells start with a figure are aligned to the right.

    Args:
        header: Names of the columns.
        rows: Cells of each row.
    """
    marks = []
    for cells in zip(*rows, strict=True):
        filled_in = [cell for cell in cells if cell]
        figures = [cell for cell in filled_in if FIGURE.match(cell) and len(cell) <= 40]
        marks.append("---:" if 2 * len(figures) > len(filled_in) else "---")
    return joined([header, marks, *rows])


def joined(lines: list[list[str]]) -> str:
    """Return a Markdown table of these cells."""
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    for path in sorted(MEASURED.glob("*.md")):
        path.write_text(filled(path), encoding="utf-8")
