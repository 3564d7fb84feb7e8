"""From fetched files to raw splits: members of archives, compressed text, SGML and XML test sets as plain lines.

Of archives only the members named in the dataset file are read; what is written is named here.
"""

import logging
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

from pipeline.core.disk import require_space
from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write
from pipeline.core.shown_text import one_line, shown
from pipeline.data.dataset import DownloadedDataset, Part, Side
from pipeline.data.fetch.archives import unpack
from pipeline.data.fetch.untrusted import gunzipped, lines_in, opened, parsing

log = logging.getLogger(__name__)

SEGMENT_TAG = re.compile(rb"<(?:seg(?:\s[^<>]*)?|/seg\s*)>", re.IGNORECASE)


def write_raw_splits(dataset: DownloadedDataset, files: dict[str, Path], corpus: Path) -> None:
    """Write raw/<split>.<language>, further references as raw/<split>.<language>2 …, whole or not at all.

    files: fetched files by source, and folders by licensed package.

    Raises:
        UserError: a member is missing, an archive is damaged, or a part has not the lines it should have.
    """
    unpacked = corpus / "raw/.unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)
    members: dict[tuple[str, str], Path] = {}
    for name in dataset.sources:
        wanted = {side.member for side in dataset.sides if side.source == name and side.member}
        members |= unpack(files[name], name, wanted, unpacked / name) if wanted else {}
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
    shutil.rmtree(unpacked, ignore_errors=True)


def path_of(side: Side, files: dict[str, Path], members: dict[tuple[str, str], Path]) -> Path:
    if side.package:
        return files[side.place] / side.file_name
    return members[side.place, side.member] if side.member else files[side.place]


def append_part(part: Part, paths: list[Path], outputs: list[IO[bytes]], where: str) -> None:
    """Append all sides of a part; raises UserError when they differ in lines, or from the count expected."""
    counts = []
    for side, path, output in zip(part.sides, paths, outputs, strict=True):
        count = 0
        for line in islice(read_lines(side, path), part.first - 1, None, part.every):
            output.write(line + b"\n")
            count += 1
        counts.append(count)
    names = " and ".join(side.file_name for side in part.sides)
    if len(set(counts)) > 1:
        lines = " and ".join(map(str, counts))
        raise UserError(f"{where}: {names} have {lines} lines; their sides are not aligned")
    if part.lines not in (None, counts[0]):
        raise UserError(f"{where}: {names} have {counts[0]} lines, expected {part.lines}; fetch the file again")
    log.info("%s: %s, %s lines", where, names, f"{counts[0]:,}")


def read_lines(side: Side, path: Path) -> Iterator[bytes]:
    """Lines of a side without their "\\n"; of an SGML file the segments, entities left as BLEU scripts leave them.

    Raises:
        UserError: the file is damaged, or has no such translator.
    """
    stem = side.file_name.removesuffix(".gz")
    if stem.endswith(".xml"):
        yield from xml_segments(path, side.translator)
        return
    with opened(path) as file:
        lines = lines_in(gunzipped(file, side.file_name), path)
        yield from segments(lines, path) if stem.endswith(".sgm") else (line.removesuffix(b"\n") for line in lines)


def segments(lines: Iterable[bytes], path: Path) -> Iterator[bytes]:
    """Yield the text of each <seg>, which may span lines, with white space collapsed.

    Raises:
        UserError: A <seg> is not closed before the next one or the end.
    """
    text = b" ".join(b"".join(lines).split())
    number, start = 0, None
    for tag in SEGMENT_TAG.finditer(text):
        is_end = tag.group().startswith(b"</")
        if is_end and start is not None:
            yield text[start : tag.start()].strip()
            start = None
        elif not is_end:
            if start is not None:
                break
            number, start = number + 1, tag.end()
    if start is not None:
        raise UserError(f"{path}: segment {number} is not closed by </seg>; fetch the file again")


def xml_segments(path: Path, translator: str | None) -> Iterator[bytes]:
    """Yield the segments of a WMT test set in XML, without its test suites.

    Args:
        path: The file.
        translator: Whose <ref> is read; None = the <src>.

    Raises:
        UserError: The file is damaged, or a document lacks that translator.
    """
    with opened(path) as file, parsing(path):
        documents = [found for found in ElementTree.parse(file).iter("doc") if "testsuite" not in found.attrib]
    for document in documents:
        sides = document.findall("src" if translator is None else "ref")
        if translator is not None:
            sides = [side for side in sides if side.get("translator") == translator]
        if len(sides) != 1:
            name = one_line(document.get("id", "without id"), 80)
            wanted = "src" if translator is None else f"ref by translator {shown(translator)}"
            raise UserError(
                f"{path}: document {name} has {len(sides)} of {wanted}; correct `translator` in the dataset"
            )
        for segment in sides[0].iter("seg"):
            yield " ".join("".join(segment.itertext()).split()).encode()
