"""Raw splits from fetched files: members of archives, compressed text, and SGML and XML test sets as plain lines.

Only the members named in the dataset file are read, and outputs have fixed names. `raw.done` lists the files of a
complete corpus.
"""

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import IO

from pipeline.core.artifacts import Raw
from pipeline.core.disk import require_space
from pipeline.core.errors import UserError
from pipeline.core.files import WRITTEN_FILES, atomic_write
from pipeline.core.layout import IN_CORPUS
from pipeline.core.records.corpus import RawFiles
from pipeline.data.dataset import DownloadedDataset, Part, Side
from pipeline.data.fetch.archives import folder_of_copies, unpack
from pipeline.data.fetch.segments import Segments, aligned, sgml_segments, xml_segments
from pipeline.data.fetch.untrusted import gunzipped, lines_in, opened, read_all

log = logging.getLogger(__name__)


def write_raw_splits(dataset: DownloadedDataset, files: dict[str, Path], corpus: Path) -> None:
    """Write raw/<split>.<language>, and further references as raw/<split>.<language>2, …, atomically.

    Args:
        dataset: Parallel text, with the parts of each split.
        files: Fetched files by source, and folders by licensed package.
        corpus: Folder of the corpus.

    Raises:
        UserError: A member is missing, an archive is damaged, or a part has an unexpected number of lines.
    """
    with folder_of_copies(corpus) as folder:
        members: dict[tuple[str, str], Path] = {}
        for name in dataset.sources:
            wanted = {side.member for side in dataset.sides if side.source == name and side.member}
            members |= unpack(files[name], name, wanted, folder / name) if wanted else {}
        plain = (path_of(side, files, members) for side in dataset.sides)
        require_space(corpus, sum(path.stat().st_size for path in plain), "the raw splits")
        for split in dataset.split_names:
            with ExitStack() as stack:
                outputs = [
                    stack.enter_context(atomic_write(corpus / f"raw/{split}.{side}", "wb"))
                    for side in (dataset.src, *dataset.references(split))
                ]
                for part in dataset.splits[split].parts:
                    paths = [path_of(side, files, members) for side in part.sides]
                    append_part(part, paths, outputs, f"{dataset.name} {split}")


def path_of(side: Side, files: dict[str, Path], members: dict[tuple[str, str], Path]) -> Path:
    """Return the file that holds a `side`: in `files` by source or package, or in `members` by source and member."""
    if side.package:
        return files[side.place] / side.file_name
    return members[side.place, side.member] if side.member else files[side.place]


def append_part(part: Part, paths: list[Path], outputs: list[IO[bytes]], where: str) -> None:
    """Append all sides of a part to the files of a split.

    Args:
        part: Range and expected number of lines.
        paths: File of each side.
        outputs: Open file of each side.
        where: Dataset and split, for messages.

    Raises:
        UserError: The sides differ in number of lines, or from the expected number.
    """
    names = [side.file_name for side in part.sides]
    if all(is_segmented(side) for side in part.sides):
        sides = [segments(side, path) for side, path in zip(part.sides, paths, strict=True)]
        columns: Iterable[Iterable[bytes]] = zip(*aligned(sides, names, where), strict=True)
    else:
        columns = (read_side(side, path) for side, path in zip(part.sides, paths, strict=True))
    counts: list[int] = []
    for column, output in zip(columns, outputs, strict=True):
        count = 0
        for line in islice(column, part.first - 1, None, part.every):
            if count == part.lines:
                raise UserError(f"{where}: {names[len(counts)]} has more than {count} lines; fetch the file again")
            output.write(line + b"\n")
            count += 1
        counts.append(count)
    files = " and ".join(names)
    if len(set(counts)) > 1:
        lines = " and ".join(map(str, counts))
        raise UserError(f"{where}: {files} have {lines} lines; their sides are not aligned")
    if part.lines is not None and counts != [part.lines] * len(paths):
        raise UserError(f"{where}: {files} have {counts[0]} lines, expected {part.lines}; fetch the file again")
    log.info("%s: %s, %s lines", where, files, f"{counts[0]:,}")


def stem_of(side: Side) -> str:
    """Return the file name of a side in lower case without `.gz`."""
    return side.file_name.lower().removesuffix(".gz")


def is_segmented(side: Side) -> bool:
    """Return whether a side is SGML or XML, in which documents and segments have ids."""
    return stem_of(side).endswith((".xml", ".sgm", ".sgml"))


def segments(side: Side, path: Path) -> Segments:
    """Return the segments of the SGML or XML file `path`, of which `side` gives format and reference.

    Raises:
        UserError: The file is damaged, has no segment, or lacks the side.
    """
    with opened(path) as file:
        content = read_all(gunzipped(file, side.file_name, path, path.stat().st_size), path)
    if stem_of(side).endswith(".xml"):
        found = xml_segments(content, path, side.translator, side.reference)
    else:
        found = sgml_segments(content, path)
    if not found:
        raise UserError(f"{path}: has no segment <seg>; fetch the file again, or convert it to UTF-8")
    return found


def read_side(side: Side, path: Path) -> Iterator[bytes]:
    """Yield the lines of `path` without line feeds, or its segments; `side` gives format and compression.

    Raises:
        UserError: The file is damaged, or lacks the side.
    """
    if is_segmented(side):
        yield from segments(side, path).values()
        return
    with opened(path) as file:
        yield from lines_in(gunzipped(file, side.file_name, path, path.stat().st_size), path)


def write_raw_mark(corpus: Path) -> None:
    """Write `raw.done`, which lists the files that this stage wrote in the folder of a corpus.

    Raises:
        UserError: The file cannot be written.
    """
    folder = Path(os.path.abspath(corpus))
    files = sorted(
        str(path.relative_to(folder)) for path in WRITTEN_FILES if path.is_relative_to(folder) and path.exists()
    )
    RawFiles(files=files).write(corpus / IN_CORPUS[Raw])


def files_listed(mark: Path) -> set[Path]:
    """Return the files listed in a `raw.done`; none if it is missing or damaged."""
    try:
        return {mark.parent / name for name in RawFiles.read(mark).files}
    except UserError:
        return set()
