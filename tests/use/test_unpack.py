"""Archives of models that somebody else made, or that came in pieces."""

import io
import tarfile
from pathlib import Path

import pytest

from pipeline.errors import UserError
from reprise.portable import unpack, verify


def archive_of(path: Path, members: dict[str, bytes | None]) -> Path:
    """A .tar file; None: a folder."""
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.size = tarfile.DIRTYPE if content is None else tarfile.REGTYPE, len(content or b"")
            tar.addfile(entry, io.BytesIO(content or b""))
    return path


def test_an_archive_whose_first_member_is_its_own_folder_is_unpacked(tmp_path):
    archive = archive_of(tmp_path / "model.tar", {".": None, "./model/model.json": b"{}"})
    assert (unpack(archive, tmp_path / "into") / "model.json").read_bytes() == b"{}"


@pytest.mark.parametrize("members", [{}, {".": None}, {"": b"x"}])
def test_an_archive_without_a_folder_is_refused_in_a_line(tmp_path, members):
    with pytest.raises(UserError, match=r"model\.tar: can't be unpacked: .*no packed model$"):
        unpack(archive_of(tmp_path / "model.tar", members), tmp_path / "into")


def test_of_an_archive_that_is_refused_half_way_nothing_is_left_behind(tmp_path):
    archive = archive_of(tmp_path / "model.tar", {"model/a": b"a", "model/../../evil": b"b"})
    with pytest.raises(UserError, match="leads out of its folder"):
        unpack(archive, tmp_path / "into")
    assert not list((tmp_path / "into").glob("*")) and not (tmp_path / "evil").exists()


def test_sums_that_are_no_text_make_no_packed_model(tmp_path):
    (tmp_path / "SHA256SUMS").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="so no packed model"):
        verify(tmp_path)
