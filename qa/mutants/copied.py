"""A copy of the project that follows its working tree."""

import filecmp
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path


def update_copy(root: Path, folder: Path, on_change: Callable[[set[str]], None] = lambda changed: None) -> set[str]:
    """Copy the files that git tracks or would add, as they are now, and return the names of those that differed.

    Files that an earlier call copied and `root` no longer has are removed; other files in `folder` stay.

    Args:
        root: A git working tree.
        folder: An empty folder, or a copy made by an earlier call.
        on_change: Called with the names of the files that differ, before any is copied.
    """
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout.decode().split("\0")
    names = {name for name in listed if name and (root / name).is_file()}
    copied = folder / "copied.json"
    gone = set(json.loads(copied.read_text()) if copied.exists() else ()) - names
    changed = {name for name in names if not same_content(root / name, folder / name)}
    on_change(changed | gone)
    for name in gone:
        (folder / name).unlink(missing_ok=True)
    for name in changed:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, folder / name)
    copied.write_text(json.dumps(sorted(names)))
    return changed | gone


def same_content(path: Path, copy: Path) -> bool:
    return copy.exists() and filecmp.cmp(path, copy, shallow=False)
