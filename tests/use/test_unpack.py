"""Archives of models that are foreign, damaged or incomplete."""

import io
import tarfile
from pathlib import Path

import pytest
from packed_model import pack

from pipeline.core.errors import UserError
from reprise.opening import open_model, split_decoding
from reprise.portable import open_packed, pack_archive, unpack, verify


def archive_of(path: Path, members: dict[str, bytes | None]) -> Path:
    """Write a .tar file; a member without content is a folder."""
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.size = tarfile.DIRTYPE if content is None else tarfile.REGTYPE, len(content or b"")
            tar.addfile(entry, io.BytesIO(content or b""))
    return path


def test_archive_that_starts_with_its_own_folder_is_unpacked(tmp_path):
    archive = archive_of(tmp_path / "model.tar", {".": None, "./model/model.json": b"{}"})
    assert (unpack(archive, tmp_path / "into") / "model.json").read_bytes() == b"{}"


@pytest.mark.parametrize("members", [{}, {".": None}, {"": b"x"}])
def test_an_archive_without_a_folder_is_refused_in_a_line(tmp_path, members):
    with pytest.raises(UserError, match=r"model\.tar: can't be unpacked: .*not a packed model$"):
        unpack(archive_of(tmp_path / "model.tar", members), tmp_path / "into")


def test_refused_archive_leaves_no_files_behind(tmp_path):
    archive = archive_of(tmp_path / "model.tar", {"model/a": b"a", "model/../../evil": b"b"})
    with pytest.raises(UserError, match="points outside its folder"):
        unpack(archive, tmp_path / "into")
    assert not list((tmp_path / "into").glob("*")) and not (tmp_path / "evil").exists()


def test_unpack_of_a_non_archive_is_a_one_line_error(tmp_path):
    (tmp_path / "model.tar").write_bytes(b"\xff\xfe no archive")
    for name in ("model.tar", "gone.tar"):
        with pytest.raises(UserError) as told:
            unpack(tmp_path / name, tmp_path / "into")
        assert "\n" not in str(told.value) and "Errno" not in str(told.value)


def test_unpack_refuses_a_text_file_and_an_existing_folder(tmp_path):
    (tmp_path / "model.tar").write_text("a text")
    with pytest.raises(UserError, match=r"model\.tar: can't be unpacked: it is not a packed model$"):
        unpack(tmp_path / "model.tar", tmp_path)
    archive = archive_of(tmp_path / "model.tar", {"model/model.json": b"{}"})
    unpack(archive, tmp_path)
    with pytest.raises(UserError, match=rf"model\.tar: can't be unpacked: {tmp_path}/model already exists; "):
        unpack(archive, tmp_path)


def test_open_model_on_an_archive_says_to_unpack_it_first(tmp_path):
    archive = archive_of(tmp_path / "model.tar", {"model/model.json": b"{}"})
    with pytest.raises(UserError, match=rf"run `reprise unpack {archive}`, then name the folder$"):
        open_model(archive, "", {}, None)


def test_an_archive_that_is_there_is_not_written_over(tmp_path):
    (tmp_path / "model.tar").write_bytes(b"of another model")
    with pytest.raises(UserError, match=r"model\.tar: already exists"):
        pack_archive(None, "", tmp_path / "model.tar")
    assert (tmp_path / "model.tar").read_bytes() == b"of another model"


@pytest.mark.parametrize("twice", ["beam=1,beam=2", "final,beam=1,beam_size=1"])
def test_a_setting_of_a_decoding_that_is_given_twice_is_refused(twice):
    with pytest.raises(UserError, match="--decoding: beam_size: occurs 2 times"):
        split_decoding(twice)


@pytest.mark.parametrize("name", ["a" * 300, "a\0b", "x/" * 3000, "..", "", "model.json/x"])
def test_sums_of_impossible_names_are_refused_in_a_line(tmp_path, name):
    folder = pack(tmp_path)
    sums = folder / "SHA256SUMS"
    sums.write_text(sums.read_text() + f"{'0' * 64}  {name}\n")
    with pytest.raises(UserError, match="differs from the packed file; copy or download the model again"):
        open_packed(folder, threads=1)


def test_sums_that_are_no_text_make_no_packed_model(tmp_path):
    (tmp_path / "SHA256SUMS").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="so it is not a packed model"):
        verify(tmp_path)
