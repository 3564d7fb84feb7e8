"""Sides of test sets in SGML and XML are aligned by document and segment, or refused."""

import random
import time
from pathlib import Path

import pytest

from pipeline.core.errors import UserError
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
    assert [row[0].split()[1].decode() for row in rows] == [one for one in documents for _ in range(lengths[one])]


def test_documents_without_names_keep_their_place():
    lengths = {"a": 2, "b": 1}
    rows = read(sgml(["a", "b"], "en", lengths), sgml(["a", "b"], "de", lengths, ids=False))
    assert rows == [(b"en a 1", b"de 1"), (b"en a 2", b"de 2"), (b"en b 1", b"de 1")]
    with pytest.raises(UserError, match="not aligned"):
        read(sgml(["a", "b"], "en", lengths), sgml(["b", "a"], "de", lengths, ids=False))


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
