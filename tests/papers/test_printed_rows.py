"""The CSV of a printed table has every cell of every row, or is refused with the line of the fault."""

import pytest

from pipeline.core.errors import UserError
from pipeline.papers.paper import read_table, require_columns


@pytest.mark.parametrize("line", ["a", "a,b", "a,b,c,d"])
def test_a_row_of_too_few_or_too_many_cells_is_named_by_its_line(tmp_path, line):
    path = tmp_path / "table1.csv"
    path.write_text("model,bleu,source\nx,1,cited\n")
    assert read_table(path) == [{"model": "x", "bleu": "1", "source": "cited"}]
    path.write_text(f"model,bleu,source\nx,1,cited\n{line}\n")
    with pytest.raises(UserError, match=r"table1\.csv: line 3: expected 3 cells"):
        read_table(path)


def test_two_columns_of_one_name_are_refused_if_it_is_not_empty(tmp_path):
    path = tmp_path / "table1.csv"
    path.write_text("model,source,,\nx,cited,,\n")  # a spreadsheet writes empty columns
    assert read_table(path) == [{"model": "x", "source": "cited", "": ""}]
    path.write_text("model,system,source,system\nx,A,cited,B\n")
    with pytest.raises(UserError, match=r"table1\.csv: two columns are named system; rename or remove one$"):
        read_table(path)


def test_printed_table_with_byte_order_mark_has_the_same_rows(tmp_path):
    for name, encoding in (("plain.csv", "utf-8"), ("marked.csv", "utf-8-sig")):
        (tmp_path / name).write_text("model,bleu\nBasé,20.0\n", encoding=encoding)
    assert (
        read_table(tmp_path / "marked.csv") == read_table(tmp_path / "plain.csv") == [{"model": "Basé", "bleu": "20.0"}]
    )


def test_a_row_of_an_unknown_source_is_named_by_its_line(tmp_path):
    rows = [{"model": "x", "source": "cited"}, {"model": "y", "source": "cite"}]
    require_columns({"model"}, rows[:1], tmp_path / "table1.csv")
    with pytest.raises(UserError, match=r"table1\.csv: line 3: source: .*did you mean 'cited'"):
        require_columns({"model"}, rows, tmp_path / "table1.csv")
