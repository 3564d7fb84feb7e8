"""Reader of word tables, and forms of verbs.

A table file beside this one holds several tables:

    == NAME | COLUMN | COLUMN
    cell | cell

Each row has a cell for each column; cells can be empty. A line that starts with # is a comment. Rules give the forms of
regular English, German and French verbs; conjugation.txt lists the others.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pipeline.core.errors import UserError, count_of

Item = TypeVar("Item")
HEADER = "== "


@dataclass(frozen=True)
class Table:
    """A table of words.

    Attributes:
        rows: Cells of each row, by file and line.
    """

    columns: list[str]
    rows: dict[str, list[str]] = field(default_factory=dict)

    def add(self, where: str, cells: list[str]) -> None:
        """Add a row of `cells`; `where` names its file and line.

        Raises:
            UserError: The row has too few or too many cells.
        """
        if len(cells) != len(self.columns):
            raise UserError(
                f"{where}: {count_of(len(cells), 'cell')}, expected {len(self.columns)}: {' | '.join(self.columns)}"
            )
        self.rows[where] = cells

    def each(self, make: Callable[..., Item]) -> list[Item]:
        """Return the results of calling `make` with the cells of each row.

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
    """Return the tables of `<name>.txt` by name.

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


_tables = read_tables("conjugation")
ENGLISH, GERMAN, GERMAN_PRESENT, FRENCH = (
    dict(_tables[name].each(lambda infinitive, *forms: (infinitive, forms)))
    for name in ("English", "German", "German present", "French")
)
GERMAN_WITH_SEIN, FRENCH_WITH_ETRE = (_tables[name].words for name in ("German with sein", "French with être"))
GERMAN_INSEPARABLE = ("be", "ver", "er", "ent", "zer", "ge")


def english_forms(base: str) -> tuple[str, str, str]:
    """Return base, third person singular and past: `see` -> see, sees, saw."""
    consonant_y = base.endswith("y") and base[-2] not in "aeiou"
    if base in {"have", "do", "go"}:
        third = {"have": "has", "do": "does", "go": "goes"}[base]
    elif consonant_y:
        third = base[:-1] + "ies"
    else:
        third = base + ("es" if base.endswith(("s", "sh", "ch", "x", "o")) else "s")
    if base in ENGLISH:
        past = ENGLISH[base][0]
    elif consonant_y:
        past = base[:-1] + "ied"
    else:
        past = base + ("d" if base.endswith("e") else "ed")
    return base, third, past


def german_forms(infinitive: str) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Return five present forms, five past forms and the participle of a verb without its separable prefix."""
    stem = infinitive[:-2] if infinitive.endswith("en") else infinitive[:-1]
    link = "e" if stem.endswith(("t", "d", "chn", "ffn", "gn")) else ""
    if infinitive in GERMAN:
        third, participle, past = GERMAN[infinitive]
    else:
        third, past = f"{stem}{link}t", f"{stem}{link}te"
        prefixed = infinitive.startswith(GERMAN_INSEPARABLE) or infinitive.endswith("ieren")
        participle = ("" if prefixed else "ge") + f"{stem}{link}t"
    if infinitive in GERMAN_PRESENT:
        present = tuple(GERMAN_PRESENT[infinitive][0].split())
    else:
        root = third[:-1]
        second = root + ("t" if root.endswith(("s", "ß", "z", "x")) else "st")
        present = (f"{stem}e", second, third, infinitive, infinitive)
    return present, german_past(past), participle


def german_past(third: str) -> tuple[str, ...]:
    """Return the past in five persons from the third person: `kannte`, `ging`."""
    if third.endswith("e"):
        return third, third + "st", third, third + "n", third + "n"
    second = third + ("est" if third.endswith(("s", "ß", "d", "t")) else "st")
    return third, second, third, third + "en", third + "en"


def french_forms(infinitive: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], str]:
    """Return five present, future and imperfect forms, and the masculine participle.

    Raises:
        ValueError: The verb is irregular and not in conjugation.txt.
    """
    if infinitive in FRENCH:
        present_cell, stem, participle = FRENCH[infinitive]
        present = tuple(present_cell.split())
    elif infinitive.endswith("er"):
        root = infinitive[:-2]
        present = tuple(root + ending for ending in ("e", "es", "e", "ons", "ent"))
        stem, participle = infinitive, root + "é"
    elif infinitive.endswith("dre"):
        root = infinitive[:-2]
        present = (root + "s", root + "s", root, root + "ons", root + "ent")
        stem, participle = infinitive[:-1], root + "u"
    else:
        raise ValueError(f"no conjugation for the French verb {infinitive!r}; add a row to conjugation.txt")
    future = tuple(stem + ending for ending in ("ai", "as", "a", "ons", "ont"))
    past_stem = "ét" if infinitive == "être" else present[3][: -len("ons")]
    soft = past_stem.replace("ç", "c") if past_stem.endswith("ç") else past_stem.removesuffix("e")
    imperfect = (*(past_stem + e for e in ("ais", "ais", "ait")), soft + "ions", past_stem + "aient")
    return present, future, imperfect, participle
