"""The list of equivalent mutants follows the program."""

import pytest

from qa.mutants.equivalent import outdated


@pytest.mark.parametrize(
    ("file", "before", "is_outdated"),
    [
        ("pipeline/a.py", "a = (1, 2)", False),
        ("pipeline/a.py", "b = (1, 2)", True),
        ("pipeline/b.py", "a = (1, 2)", True),
        ("*", "2)", False),
        ("*", "3)", True),
    ],
)
def test_entries_without_their_lines_are_outdated(tmp_path, file, before, is_outdated):
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "pipeline/a.py").write_text("def f():\n    a = (1,\n         2)\n")
    assert outdated(tmp_path, {(file, before, ""): "why"}) == [f"{file}: {before}"] * is_outdated
