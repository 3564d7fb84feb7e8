"""Files of an archive that symbolic links lead to, directly or through folders, without leaving the archive."""

import posixpath
import unicodedata
from bisect import bisect_left
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path

from pipeline.core.errors import UserError

MOST_LINKS = 40
"""Maximum number of symbolic links in a chain, as in Linux."""
DEEPEST = 255
"""Maximum number of folders in a path with links."""
MOST_LINKED = 500_000
"""Maximum number of names below links to folders; a few links to links name exponentially many."""


def link_target(folder: str, link: str) -> str:
    """Return the path of a `link` in a `folder` (empty for a hard link) from the top; it may have `..` and links."""
    return posixpath.join(folder, unicodedata.normalize("NFC", link).replace("\\", "/"))


def linked_names(archive: Path, symbolic: dict[str, str], files: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield each name that only links lead to, with the file of the archive behind it.

    A link to a folder names all files below the folder. A link to a folder that the name already leads through is
    not followed, so loops end.

    Args:
        archive: Path of the archive, for the message.
        symbolic: Targets of its links, by name.
        files: Names of its files; of a file and a link with one name, the file counts.

    Raises:
        UserError: Links name more files than any corpus has.
    """
    links = {name: target for name, target in symbolic.items() if name not in files}
    names = sorted({*files, *links}) if links else []
    ends = {link: resolve(link, links) for link in links}
    pending: list[tuple[str, str, tuple[str, ...]]] = [(link, link, ()) for link in reversed(links)]
    count = 0
    while pending:
        name, link, above = pending.pop()
        end = ends[link]
        if end is None:
            continue
        if end in files:
            yield name, end
        elif end not in above and len(above) < MOST_LINKS:
            prefix = f"{end}/" if end else ""
            for member in islice(names, bisect_left(names, prefix), None):
                if not member.startswith(prefix):
                    break
                if (count := count + 1) > MOST_LINKED:
                    raise UserError(f"{archive}: its links to folders name more than {MOST_LINKED:,} files; repack it")
                alias = f"{name}/{member.removeprefix(prefix)}"
                if member in links:
                    pending.append((alias, member, (*above, end)))
                elif alias not in files:
                    yield alias, member


def resolve(name: str, links: dict[str, str]) -> str | None:
    """Return the path of a `name` without `links`, as Linux resolves it; None if it points outside the archive."""
    parts, ahead, followed = list[str](), name.split("/")[::-1], 0
    while ahead:
        if len(ahead) + len(parts) > DEEPEST:
            return None
        part = ahead.pop()
        if part == ".." and parts:
            parts.pop()
        elif part == "..":
            return None
        elif part not in ("", "."):
            parts.append(part)
            if target := links.get("/".join(parts)):
                if target.startswith("/") or (followed := followed + 1) > MOST_LINKS:
                    return None
                parts.clear()
                ahead += target.split("/")[::-1]
    return "/".join(parts)
