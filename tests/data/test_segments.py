"""Sides of test sets in SGML and XML are aligned by document and segment, or refused."""

import random
import time
from pathlib import Path

import pytest
from pydantic import ValidationError

from pipeline.core.errors import UserError
from pipeline.data.dataset.parallel import Side
from pipeline.data.fetch.raw_text import segments
from pipeline.data.fetch.segments import aligned, sgml_segments

PATH = Path("x.sgm")


def sgml(documents: list[str], word: str, lengths: dict[str, int], ids: bool = True) -> bytes:
    lines = ['<refset setid="x">']
    for document in documents:
        lines.append(f'<DOC sysid="ref" docid="{document}">' if ids else "<doc>")
        lines += [
            f'<seg id="{n}">\n{word} {document if ids else ""} {n}\n</seg>' for n in range(1, lengths[document] + 1)
        ]
        lines.append("</DOC>")
    return "\n".join([*lines, "</refset>"]).encode()


def read(*contents: bytes) -> list[tuple[bytes, ...]]:
    sides = [sgml_segments(content, PATH) for content in contents]
    return list(aligned(sides, [f"side{number}" for number in range(len(sides))], "toy test"))


def test_documents_in_any_order_meet_their_translations(seed):
    draw = random.Random(seed)
    lengths = {f"d{number}": draw.randint(1, 4) for number in range(9)}
    documents = [*lengths]
    rows = read(sgml(documents, "en", lengths), *(sgml(draw.sample(documents, 9), "de", lengths) for _ in range(3)))
    assert len(rows) == sum(lengths.values())
    assert all({side.split()[1:][0] for side in row} == {row[0].split()[1]} for row in rows)
    assert all(side.split()[2] == row[0].split()[2] for row in rows for side in row)
    assert [row[0].split()[1].decode() for row in rows] == [
        document for document in documents for _ in range(lengths[document])
    ]


def test_documents_without_names_keep_their_place():
    lengths = {"a": 2, "b": 1}
    rows = read(sgml(["a", "b"], "en", lengths), sgml(["a", "b"], "de", lengths, ids=False))
    assert rows == [(b"en a 1", b"de 1"), (b"en a 2", b"de 2"), (b"en b 1", b"de 1")]
    with pytest.raises(UserError, match="not aligned"):
        read(sgml(["a", "b"], "en", lengths), sgml(["b", "a"], "de", lengths, ids=False))


@pytest.mark.parametrize("named", [True, False])
def test_segments_of_unnamed_documents_meet_by_their_ids(seed, named):
    draw = random.Random(seed)
    lengths = [draw.randint(1, 5) for _ in range(6)]

    def side(word: str, shuffled: bool, names: bool) -> bytes:
        lines = []
        for place, length in enumerate(lengths):
            numbers = draw.sample(range(1, length + 1), length) if shuffled else range(1, length + 1)
            lines.append(f"<doc docid='d{place}'>" if names else "<doc>")
            lines += [*(f"<seg id={n}>{word} {place} {n}</seg>" for n in numbers), "</doc>"]
        return "\n".join(lines).encode()

    rows = read(side("en", False, named), side("de", True, False))
    assert rows == [
        (f"en {place} {n}".encode(), f"de {place} {n}".encode())
        for place, length in enumerate(lengths)
        for n in range(1, length + 1)
    ]


@pytest.mark.parametrize(
    ("other", "lengths"), [(["a", "c"], {"a": 2, "c": 2}), (["a"], {"a": 2}), (["a", "b"], {"a": 2, "b": 1})]
)
def test_a_segment_that_one_side_lacks_is_named(other, lengths):
    with pytest.raises(UserError, match=r"toy test: side0 and side1 .* not aligned: segment '\d' of document '[bc]'"):
        read(sgml(["a", "b"], "en", {"a": 2, "b": 2}), sgml(other, "de", lengths))


def test_a_document_of_one_name_twice_stays_apart():
    both = sgml(["a", "a"], "en", {"a": 1})
    assert read(both, both) == [(b"en a 1", b"en a 1")] * 2


def test_segments_that_do_not_end_are_refused_at_once():
    begin = time.monotonic()
    with pytest.raises(UserError, match=r"x.sgm: segment 1 is not closed by"):
        sgml_segments(b'<seg id="1">a ' * 100_000, PATH)
    assert time.monotonic() - begin < 5


def nist(folder: Path, name: str, sets: list[tuple[str, list[str]]], lengths: dict[str, int]) -> str:
    """Write a file of NIST: a name and an order of documents for each of its sets; headlines are segments too."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<!DOCTYPE mteval SYSTEM "mteval-xml-v1.2.dtd">', "<mteval>"]
    for word, documents in sets:
        tag = "srcset" if word == "zh" else "refset"
        lines.append(f'<{tag} setid="x" srclang="Chinese" trglang="English" refid="{word}">')
        for document in documents:
            texts = [f'<seg id="{n}"> {word} {document} {n} &amp; </seg>' for n in range(1, lengths[document] + 1)]
            lines += [f'<doc docid="{document}" genre="nw">', f"<hl>{texts[0]}</hl><p>", *texts[1:], "</p></doc>"]
        lines.append(f"</{tag}>")
    (folder / name).write_text("\n".join([*lines, "</mteval>"]), encoding="utf-8")
    return name


def test_nist_source_meets_each_of_its_four_references(tmp_path, seed):
    draw = random.Random(seed)
    lengths = {f"d{number}": draw.randint(1, 4) for number in range(9)}
    documents, words = [*lengths], ["E01", "E02", "E03", "E04"]
    source = nist(tmp_path, "mt.xml", [("zh", documents)], lengths)
    references = nist(tmp_path, "mt-ref.xml", [(word, draw.sample(documents, 9)) for word in words], lengths)
    sides = [Side(source=source), *(Side(source=references, reference=number) for number in range(1, 5))]
    read_sides = [segments(side, tmp_path / side.file_name) for side in sides]
    expected = [(name, n) for name in documents for n in range(1, lengths[name] + 1)]
    assert list(aligned(read_sides, [side.file_name for side in sides], "toy test")) == [
        tuple(f"{word} {name} {n} &".encode() for word in ("zh", *words)) for name, n in expected
    ]


@pytest.mark.parametrize(
    ("file", "choice", "message"),
    [
        ("mt.xml", {"reference": 1}, "mt.xml: has 0 <refset>, but a <refset> number 1 is needed"),
        ("mt-ref.xml", {"reference": 3}, "mt-ref.xml: has 2 <refset>, but a <refset> number 3 is needed"),
        ("mt-ref.xml", {}, "mt-ref.xml: has 0 <srcset>, but the one <srcset> is needed"),
        ("mt-ref.xml", {"translator": "E01"}, "mt-ref.xml: is a NIST file; choose one of its references by"),
        ("wmt.xml", {"reference": 1}, "wmt.xml: is not a NIST file"),
    ],
)
def test_a_side_that_a_nist_file_lacks_is_named(tmp_path, file, choice, message):
    nist(tmp_path, "mt.xml", [("zh", ["a"])], {"a": 1})
    nist(tmp_path, "mt-ref.xml", [("E01", ["a"]), ("E02", ["a"])], {"a": 1})
    (tmp_path / "wmt.xml").write_text('<dataset><doc id="a"><src><seg id="1">x</seg></src></doc></dataset>')
    with pytest.raises(UserError, match=message):
        segments(Side(source=file, **choice), tmp_path / file)


@pytest.mark.parametrize("settings", [{"translator": "A"}, {"source": "x.sgm"}])
def test_a_numbered_reference_is_for_xml_without_translator(settings):
    with pytest.raises(ValidationError, match=r"translator|reference is for"):
        Side(**{"source": "x.xml", "reference": 1, **settings})
