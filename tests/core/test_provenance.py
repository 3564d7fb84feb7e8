"""Where a number comes from."""

import subprocess

import pytest

from pipeline.core import provenance


@pytest.fixture(autouse=True)
def forget_commit():
    provenance.commit.cache_clear()
    yield
    provenance.commit.cache_clear()


def test_commit_is_that_of_the_checkout():
    head = subprocess.run(["git", "-C", str(provenance.ROOT), "rev-parse", "HEAD"], capture_output=True, text=True)
    expected = head.stdout.strip()[:12] if head.returncode == 0 else "unknown"
    assert provenance.commit().removesuffix("+changes") == expected


def test_commit_is_unknown_on_a_machine_without_git(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert provenance.commit() == "unknown"
