"""Stages check for disk space first, and the message says how much is missing and what to do."""

import os
import pwd
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from toy_corpus import make_dataset, write_toy_raw

from pipeline.core import disk
from pipeline.core.disk import SPARE_BYTES, cache_folder, own_folder, require_space
from pipeline.core.errors import UserError
from pipeline.data.text.encode import encode
from pipeline.data.text.prepare import prepare
from pipeline.data.text.subwords import learn_vocabularies


@contextmanager
def full(monkeypatch) -> Iterator[None]:
    """Leave 100 bytes free."""
    with monkeypatch.context() as patch:
        patch.setattr(disk.shutil, "disk_usage", lambda folder: SimpleNamespace(free=SPARE_BYTES + 100))
        yield


def test_disk_check_passes_or_names_what_does_not_fit(monkeypatch, tmp_path):
    said = r"will need 101 B and a reserve of 67\.1 MB, but 67\.1 MB are free; free some space .*`work:`"
    with full(monkeypatch):
        require_space(tmp_path / "not/there/yet", 100, "a thing")
        with pytest.raises(UserError, match=said):
            require_space(tmp_path, 101, "a thing")


def test_preparing_and_encoding_ask_first(monkeypatch, tmp_path):
    dataset = make_dataset()
    write_toy_raw(tmp_path)
    with full(monkeypatch), pytest.raises(UserError, match="prepared text will need"):
        prepare(dataset, tmp_path, 1)
    assert not (tmp_path / "prepared").exists()
    prepare(dataset, tmp_path, 1)
    learn_vocabularies(dataset, tmp_path)
    with full(monkeypatch), pytest.raises(UserError, match="the encoded corpus will need"):
        encode(dataset, tmp_path, 1)
    encode(dataset, tmp_path, 1)

    def total(pattern):
        return sum(path.stat().st_size for path in tmp_path.glob(pattern))

    assert total("prepared/*") <= 2.1 * total("raw/*") + 2000
    assert total("encoded/*") <= 0.8 * total("prepared/*.tok.*") + 30000


def test_who_has_no_home_has_a_folder_on_the_machine_s_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == Path(tmp_path / "home/.cache/reprise")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # the XDG standard ignores relative paths
    assert cache_folder() == Path(tmp_path / "home/.cache/reprise")
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda folder, rights: rights == os.X_OK)
        assert cache_folder() == own_folder(), "a folder that may be entered alone holds no files"
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", Mock(side_effect=KeyError))
    assert cache_folder() == own_folder() and cache_folder().parent == tmp_path
    monkeypatch.delenv("XDG_CACHE_HOME")
    for home in ("/dev/null", "/proc/none", "", "h" * 300, "/" + "h" * 300):
        monkeypatch.setenv("HOME", home)
        assert cache_folder().is_absolute() and (home != "/dev/null" or cache_folder() == own_folder())
