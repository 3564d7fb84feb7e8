"""The server that runs the commands of tests must not hang."""

import os
import subprocess

import pytest
import warm


def test_a_server_that_hangs_in_an_import_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(warm, "START_LIMIT_S", 0.5)
    (tmp_path / "torch.py").write_text("import time\n\ntime.sleep(30)\n")
    with pytest.raises(subprocess.TimeoutExpired):
        warm.start_server(tmp_path, tmp_path, os.getpid())
    assert not (tmp_path / "socket").exists()
