"""Mutants run in a copy that follows the working tree."""

import subprocess

import pytest

from qa.mutants.copied import update_copy


@pytest.fixture
def root(tmp_path):
    """A working tree with a tracked, a new and an ignored file."""
    folder = tmp_path / "root"
    (folder / "pipeline").mkdir(parents=True)
    for name, text in {"pipeline/a.py": "a = 1", "new.py": "b = 1", "work": "big", ".gitignore": "work"}.items():
        (folder / name).write_text(text)
    for command in (["init", "-q"], ["add", "pipeline", ".gitignore"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


@pytest.fixture
def copy(tmp_path):
    (tmp_path / "copy").mkdir()
    return tmp_path / "copy"


def contents(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_copy_follows_changed_new_and_removed_files(root, copy):
    assert update_copy(root, copy) == {"pipeline/a.py", "new.py", ".gitignore"}
    assert update_copy(root, copy) == set()
    (copy / "traces.json").write_text("kept")
    (root / "pipeline/a.py").write_text("a = 2")
    (root / "new.py").rename(root / "renamed.py")
    assert update_copy(root, copy) == {"pipeline/a.py", "new.py", "renamed.py"}
    found = contents(copy)
    assert found.pop("copied.json") and found.pop("traces.json") == "kept"
    assert found == {"pipeline/a.py": "a = 2", "renamed.py": "b = 1", ".gitignore": "work"}


def test_callback_runs_before_any_file_changes(root, copy):
    update_copy(root, copy)
    (root / "pipeline/a.py").write_text("a = 2")
    (root / "new.py").unlink()
    seen = []
    update_copy(root, copy, lambda changed: seen.append((changed, contents(copy))))
    ((changed, before),) = seen
    assert changed == {"pipeline/a.py", "new.py"}
    assert before["pipeline/a.py"] == "a = 1" and before["new.py"] == "b = 1"


def test_file_that_was_changed_in_the_copy_is_restored(root, copy):
    update_copy(root, copy)
    (copy / "pipeline/a.py").write_text("a = 3")  # as a killed run leaves a mutant
    assert update_copy(root, copy) == {"pipeline/a.py"} and (copy / "pipeline/a.py").read_text() == "a = 1"
