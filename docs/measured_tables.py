"""Write the tables of the pages in docs/measured from the records beside them: python docs/measured_tables.py.

A page names a record's table, its rows and its columns in a comment; the Markdown table stands between that comment and
`<!-- end -->`, so that the page can be read on GitHub as well. A test compares each page with its records.
"""

import csv
import re
import sys
from pathlib import Path

import yaml

MEASURED = Path(__file__).parent / "measured"
TABLE = re.compile(r"(<!-- records\n(.*?)-->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: Path) -> str:
    """Return the text of a page with every table written again from its records."""

    def table(found: re.Match) -> str:
        return f"{found[1]}\n{markdown(page, yaml.safe_load(found[2]))}\n\n{found[3]}"

    return TABLE.sub(table, page.read_text(encoding="utf-8"))


def markdown(page: Path, wanted: dict) -> str:
    """Write one table.

    Args:
        page: The page, for messages.
        wanted: `file`, a CSV file below docs/measured; `key`, the column that names a row (default `system`); `rows`
            and `columns`, each from a name in the file to what the page calls it.

    Raises:
        SystemExit: The file has no such row or column, or several rows of one name.
    """
    with open(MEASURED / wanted["file"], encoding="utf-8", newline="") as file:
        records = list(csv.DictReader(file))
    key = wanted.get("key", "system")
    if unknown := [name for name in (key, *wanted["columns"]) if name not in records[0]]:
        sys.exit(f"{page}: {wanted['file']} has no column {unknown[0]!r}; it has {', '.join(records[0])}")
    lines = [["", *wanted["columns"].values()], ["---", *["---:"] * len(wanted["columns"])]]
    for name, shown in wanted["rows"].items():
        found = [record for record in records if record[key] == name]
        if len(found) != 1:
            sys.exit(f"{page}: {wanted['file']} has {len(found)} rows whose {key} is {name!r}")
        lines.append([shown, *(found[0][column] for column in wanted["columns"])])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    for path in sorted(MEASURED.glob("*.md")):
        path.write_text(filled(path), encoding="utf-8")
