"""Test sets in SGML and XML, and the alignment of their sides by document and segment."""

import codecs
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from pipeline.core.errors import UserError, one_line, shown
from pipeline.data.fetch.untrusted import parsing

TAG = re.compile(rb"<(/?)(doc|seg)\b([^<>]*)>", re.IGNORECASE)
TAG_OR_COMMENT = re.compile(rb"<!--|" + TAG.pattern, re.IGNORECASE)
ATTRIBUTE = re.compile(rb"""(?<![\w-])([\w-]++)\s*+=\s*+("[^"]*"|'[^']*'|[^\s"'>]+)""")

DECLARED = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml[^<>]{1,99}encoding\s*=\s*["']([\w.:-]{1,40})["']""")
DECODED_HERE = frozenset({"utf-8", "gb2312", "gbk", "gb18030", "big5", "big5hkscs", "shift_jis", "cp932", "euc_jp"})
DECODED_HERE |= {"iso2022_jp", "euc_kr", "cp949", "johab"}


class Key(NamedTuple):
    """Name of a segment in every language; missing and repeated ids are numbered."""

    document: str
    nth_document: int
    segment: str
    nth_segment: int


Segments = dict[Key, bytes]


class Keys:
    """Generator of the keys of a file's segments, in order."""

    def __init__(self) -> None:
        self.documents: Counter[str] = Counter()
        self.segments: Counter[str] = Counter()
        self.document = ""

    def begin(self, document: str) -> None:
        """Begin a document."""
        self.document, self.segments = document, Counter()
        self.documents[document] += 1

    def next_key(self, segment: str) -> Key:
        """Return the key of the next segment."""
        self.segments[segment] += 1
        return Key(self.document, self.documents[self.document], segment, self.segments[segment])


def sgml_segments(content: bytes, path: Path) -> Segments:
    """Return the text of each <seg> in the `content` of the file `path`; it may span lines.

    White space is collapsed, and entities are unchanged. A comment between segments hides the tags in it. Within a
    segment `<!--` is text.

    Raises:
        UserError: A segment or comment does not end.
    """
    found, keys = Segments(), Keys()
    begin, key, position = 0, None, 0
    while tag := (TAG if key else TAG_OR_COMMENT).search(content, position):
        if tag[2] is None:
            position = content.find(b"-->", tag.end())
            if position < 0:
                raise UserError(f"{path}: a comment is not closed by -->; fetch the file again")
            continue
        position = tag.end()
        closes, name = bool(tag[1]), tag[2].lower()
        if name == b"seg" and closes and key:
            found[key], key = b" ".join(content[begin : tag.start()].split()), None
        elif key and not closes:
            break
        elif name == b"seg" and not closes:
            begin, key = tag.end(), keys.next_key(attribute(tag[3], b"id"))
        elif not closes:
            keys.begin(attribute(tag[3], b"docid") or attribute(tag[3], b"id"))
    if key:
        raise UserError(f"{path}: segment {len(found) + 1} is not closed by </seg>; fetch the file again")
    return found


def attribute(text: bytes, name: bytes) -> str:
    """Return the attribute `name`, in lower case, from the `text` of a tag after its name; empty if there is none."""
    for found in ATTRIBUTE.finditer(text):
        if found[1].lower() == name:
            return found[2].strip(b"\"'").decode("utf-8", "replace").strip()
    return ""


def xml_segments(content: bytes, path: Path, translator: str | None, reference: int | None) -> Segments:
    """Return the text of each <seg> of a test set in XML, as WMT or NIST publish it.

    Args:
        content: Test set.
        path: Path of its file, for messages.
        translator: Translator whose <ref> of a WMT file is read; None reads the <src>.
        reference: Number, from 1, of the <refset> of a NIST file that is read; None reads the <srcset>.

    Raises:
        UserError: The file is damaged, or lacks that side.
    """
    with parsing(path):
        root = parse_xml(content)
    if root.tag == "mteval":
        if translator is not None:
            raise UserError(f"{path}: is a NIST file; choose one of its references by `reference`, not `translator`")
        documents = nist_documents(root, reference, path)
    elif reference is not None:
        raise UserError(f"{path}: is not a NIST file, whose root is <mteval>; remove `reference` from the dataset")
    else:
        documents = wmt_documents(root, translator, path)
    found, keys = Segments(), Keys()
    for name, document in documents:
        keys.begin(name)
        for segment in document.iter("seg"):
            found[keys.next_key(segment.get("id", ""))] = " ".join("".join(segment.itertext()).split()).encode()
    return found


def parse_xml(content: bytes) -> ElementTree.Element:
    """Return the root of an XML file; expat itself reads neither East Asian encodings nor the name `utf8`."""
    declared = DECLARED.match(content)
    name = codecs.lookup(declared[1].decode()).name if declared else ""
    if name not in DECODED_HERE:
        return ElementTree.fromstring(content)
    parser = ElementTree.XMLParser(encoding="utf-8")  # instead of the declared one
    return ElementTree.fromstring(content.decode(name).encode(), parser)


def nist_documents(
    root: ElementTree.Element, reference: int | None, path: Path
) -> list[tuple[str, ElementTree.Element]]:
    """Return name and text of each document of one side of a NIST test set.

    The source is a <srcset> in one file; the references are the <refset>s of another.

    Args:
        root: The <mteval> of the file.
        reference: Number of the <refset>, from 1; None returns those of the only <srcset>.
        path: Path of the file, for messages.

    Raises:
        UserError: The file lacks that side.
    """
    tag = "srcset" if reference is None else "refset"
    sets = root.findall(tag)
    if len(sets) < (reference or 1) or (reference is None and len(sets) > 1):
        wanted = "the one <srcset>" if reference is None else f"a <refset> number {reference}"
        raise UserError(f"{path}: has {len(sets)} <{tag}>, but {wanted} is needed; correct `member` or `reference`")
    return [(document.get("docid", ""), document) for document in sets[(reference or 1) - 1].findall("doc")]


def wmt_documents(
    root: ElementTree.Element, translator: str | None, path: Path
) -> list[tuple[str, ElementTree.Element]]:
    """Return name and text of each document of one side of a WMT test set, without its test suites.

    Args:
        root: Root of the file.
        translator: Translator of the <ref>; None returns the <src>.
        path: Path of the file, for messages.

    Raises:
        UserError: A document does not have exactly one such text.
    """
    found = []
    for document in root.iter("doc"):
        if "testsuite" in document.attrib:
            continue
        sides = document.findall("src" if translator is None else "ref")
        if translator is not None:
            sides = [side for side in sides if side.get("translator") == translator]
        if len(sides) != 1:
            name = one_line(document.get("id", "without id"), 80)
            wanted = "src" if translator is None else f"ref by translator {shown(translator)}"
            raise UserError(
                f"{path}: document {name} has {len(sides)} of {wanted}; correct `translator` in the dataset"
            )
        found.append((document.get("id", ""), sides[0]))
    return found


def aligned(sides: Sequence[Segments], names: Sequence[str], where: str) -> Iterator[tuple[bytes, ...]]:
    """Yield each segment of all sides, in the order of the first side.

    Documents without names are aligned by position if they have equal lengths, and their segments by id if both sides
    have the same ids.

    Args:
        sides: Segments by their keys.
        names: Files of the sides, for messages.
        where: Dataset and split, for messages.

    Raises:
        UserError: The sides have different segments.
    """
    first = sides[0]
    rows = []
    for side, name in zip(sides, names, strict=True):
        if side.keys() == first.keys():
            rows.append([side[key] for key in first])
        elif (is_unnamed(side) or is_unnamed(first)) and shape(side) == shape(first):
            known, keys = by_position(side), [*by_position(first)]
            rows.append([known[key] for key in keys] if known.keys() == {*keys} else [*side.values()])
        else:
            other = next(iter([*(first.keys() - side.keys()), *(side.keys() - first.keys())]))
            has, lacks = (names[0], name) if other in first else (name, names[0])
            raise UserError(
                f"{where}: {names[0]} and {name} have {len(first)} and {len(side)} lines; they are not aligned: "
                f"segment {named(other)} of {has} is not in {lacks}"
            )
    yield from zip(*rows, strict=True)


def is_unnamed(side: Segments) -> bool:
    """Return whether no document has an id."""
    return not any(key.document for key in side)


def by_position(side: Segments) -> Segments:
    """Return the segments with documents named by their position."""
    documents = dict.fromkeys((key.document, key.nth_document) for key in side)
    places = {document: str(place) for place, document in enumerate(documents)}
    return {
        Key(places[key.document, key.nth_document], 1, key.segment, key.nth_segment): text for key, text in side.items()
    }


def shape(side: Segments) -> list[int]:
    """Return the number of segments of each document, in order."""
    return [*Counter((key.document, key.nth_document) for key in side).values()]


def named(key: Key) -> str:
    """Describe a key for a message."""
    return f"{shown(key.segment)} of document {shown(key.document)}"
