"""Mutants that mean the same as the program, as equivalent.yaml lists them."""

from pathlib import Path

import yaml


def equivalents(path: Path) -> dict[tuple[str, str, str], str]:
    """Return the reasons by file, lines before and lines after."""
    listed = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    return {(mutant["file"], mutant["before"], mutant["after"]): mutant["reason"] for mutant in listed}


def outdated(root: Path, same: dict[tuple[str, str, str], str]) -> list[str]:
    """Return the entries whose lines are nowhere in their file, as `FILE: LINES`."""
    found = []
    for file, before, _ in same:
        paths = [root / file] if file != "*" else (root / "pipeline").rglob("*.py")
        if not any(before in joined_lines(path) for path in paths if path.exists()):
            found.append(f"{file}: {before}")
    return found


def joined_lines(path: Path) -> str:
    """Return the text of a file with its lines joined as those of a mutant."""
    return " ".join(line.strip() for line in path.read_text(encoding="utf-8").split("\n"))


def reason(found: tuple[str, str, str], same: dict[tuple[str, str, str], str]) -> str | None:
    """Return why a mutant is equivalent, if it is: in its file, or in any file."""
    return same.get(found) or same.get(("*", *found[1:]))
