"""A folder appears complete and under its final name, or not at all."""

import pytest

from pipeline.core.errors import UserError
from reprise.user_files import whole_folder


def test_a_filled_folder_takes_the_place_of_an_empty_one(tmp_path):
    (tmp_path / "model").mkdir()
    with whole_folder(tmp_path / "model") as new:
        (new / "file").write_text("text")
        assert not list((tmp_path / "model").iterdir())
    assert [path.name for path in tmp_path.rglob("*")] == ["model", "file"]


def test_a_folder_that_holds_something_is_left_as_it_is(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model/mine").write_text("text")
    with pytest.raises(UserError, match=r"can't write .*model: Directory not empty"), whole_folder(tmp_path / "model"):
        pass
    assert [path.name for path in tmp_path.rglob("*")] == ["model", "mine"]
