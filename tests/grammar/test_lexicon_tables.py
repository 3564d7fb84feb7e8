"""Faults in word tables are reported with file and line."""

import pytest

from pipeline.core.errors import UserError
from pipeline.grammar.lexicon import tables
from pipeline.grammar.lexicon.entries import noun

NOUNS = "# A comment.\n== nouns | classes | gender | English | German | French | Chinese\n"


@pytest.fixture
def nouns(tmp_path, monkeypatch):
    """Read rows of nouns, given as text."""
    monkeypatch.setattr(tables, "__file__", str(tmp_path / "tables.py"))

    def read(rows, head=NOUNS):
        (tmp_path / "toy.txt").write_text(head + rows, encoding="utf-8")
        return tables.read_tables("toy")["nouns"].each(noun)

    return read


def test_rows_are_read_in_order_without_comments_and_blank_lines(nouns):
    man, bat = "person | m | man/men | m Mann/Männer | m homme | 男人 个", "x | n | bat#animal | f A/B | f C | 蝠 只"
    read = nouns(f"\n{man}\n# x\n{bat}")
    assert [noun.key for noun in read] == ["man", "bat#animal"]


@pytest.mark.parametrize(
    "row",
    [
        "person | m | man/men | m Mann/Männer | m homme",  # a cell too few
        "person | m | man/men | m Mann/Männer | m homme | 男人 个 |",  # one too many
        "person | x | man/men | m Mann/Männer | m homme | 男人 个",  # no such gender
        "person | m | man/men | m Mann/Männer | m homme | 男人",  # no measure word
    ],
)
def test_a_malformed_row_is_named_by_file_and_line(nouns, row):
    with pytest.raises(UserError, match=r"^[^\n]*toy.txt: line 3: [^\n]*$"):
        nouns(row)


def test_a_row_before_any_table_is_refused(nouns):
    with pytest.raises(UserError, match="line 1: 2 cells, expected 0"):
        nouns("a | b\n", head="")
