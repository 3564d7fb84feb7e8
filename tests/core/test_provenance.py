"""The recorded commit is the one of the checkout that runs, or `unknown`."""

import subprocess
from pathlib import Path

import pytest

from pipeline.core import provenance
from pipeline.core.provenance import commit


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A function that makes a folder a repository with one commit, and returns that commit."""
    for name in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "someone")

    def make(name):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "file").write_text(name)
        git(folder, "init", "-q")
        git(folder, "add", "file")
        git(folder, "commit", "-qm", name)
        return folder, git(folder, "rev-parse", "HEAD").strip()[:12]

    return make


@pytest.fixture
def commit_of(monkeypatch):
    """A function that returns the commit recorded by a program installed in a folder."""

    def of(folder):
        monkeypatch.setattr(provenance, "ROOT", folder)
        commit.cache_clear()
        return commit()

    yield of
    commit.cache_clear()


def test_commit_marks_changed_tracked_files(repository, commit_of):
    folder, head = repository("own")
    assert commit_of(folder) == head
    (folder / "new").touch()
    assert commit_of(folder) == head
    (folder / "file").write_text("changed")
    assert commit_of(folder) == f"{head}+changes"


def test_commit_marks_new_code_that_git_does_not_track(repository, commit_of):
    folder, head = repository("own")
    (folder / "pipeline/models/own").mkdir(parents=True)
    (folder / ".git/info/exclude").write_text("__pycache__/\n")
    (folder / "pipeline/models/__pycache__").mkdir()
    (folder / "pipeline/models/__pycache__/own.pyc").touch()
    assert commit_of(folder) == head
    (folder / "pipeline/models/own/model.py").touch()
    assert commit_of(folder) == f"{head}+changes"


def test_commit_ignores_git_variables(repository, commit_of, monkeypatch):
    (own, head), (other, _) = repository("own"), repository("other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other / ".git/objects"))
    assert commit_of(own) == head


def test_commit_is_unknown_below_another_repository(repository, commit_of, monkeypatch):
    outer, _ = repository("outer")
    (outer / "export").mkdir()
    assert commit_of(outer / "export") == "unknown"
    monkeypatch.setenv("GIT_DIR", str(outer / ".git"))
    assert commit_of(outer / "export") == "unknown"


def test_commit_of_a_worktree_is_its_own(repository, commit_of):
    outer, _ = repository("outer")
    git(outer, "worktree", "add", "-q", "tree")
    git(outer / "tree", "commit", "-q", "--allow-empty", "-m", "x")
    assert commit_of(outer / "tree") == git(outer / "tree", "rev-parse", "HEAD")[:12]


def test_commit_is_unknown_without_git(repository, commit_of, monkeypatch, tmp_path):
    own, _ = repository("own")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit_of(own) == "unknown"
