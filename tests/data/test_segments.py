"""Test sets in SGML and XML are aligned by document and segment; damaged or hostile ones are refused."""

import gzip
import io
import random
from pathlib import Path

import pytest
from pydantic import ValidationError
from time_limit import within

from pipeline.core.errors import UserError
from pipeline.data.dataset.parallel import Side
from pipeline.data.fetch.raw_text import read_side, segments
from pipeline.data.fetch.segments import aligned, sgml_segments
from pipeline.data.fetch.untrusted import lines_in

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


def test_documents_without_names_keep_their_place():
    lengths = {"a": 2, "b": 1}
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
    expected = [f"{place} {n}" for place, length in enumerate(lengths) for n in range(1, length + 1)]
    assert rows == [(f"en {place}".encode(), f"de {place}".encode()) for place in expected]


@pytest.mark.parametrize(
    ("other", "lengths", "where"),
    [
        (["a", "c"], {"a": 2, "c": 2}, "side0 is not in side1"),
        (["a"], {"a": 2}, "side0 is not in side1"),
        (["a", "b"], {"a": 2, "b": 1}, "side0 is not in side1"),
        (["a", "b"], {"a": 2, "b": 3}, "side1 is not in side0"),
    ],
)
def test_a_segment_that_one_side_lacks_is_named(other, lengths, where):
    said = rf"toy test: side0 and side1 .* not aligned: segment '\d' of document '[bc]' of {where}"
    with pytest.raises(UserError, match=said):
        read(sgml(["a", "b"], "en", {"a": 2, "b": 2}), sgml(other, "de", lengths))


def test_a_document_of_one_name_twice_stays_apart():
    both = sgml(["a", "a"], "en", {"a": 1})
    assert read(both, both) == [(b"en a 1", b"en a 1")] * 2


def test_tags_in_a_comment_between_segments_do_not_count():
    text = b'<doc docid="a"><!-- <seg id="1">old</seg> --><seg id="1">a <!-- b</seg>'
    text += b'<!----><!-- <doc docid="z"> --><seg id="2">c --> d</seg><!-- </doc> --></doc>'
    found = {(key.document, key.segment): value for key, value in sgml_segments(text, PATH).items()}
    assert found == {("a", "1"): b"a <!-- b", ("a", "2"): b"c --> d"}


def test_a_comment_that_does_not_end_is_refused_at_once():
    with within(5), pytest.raises(UserError, match=r"x.sgm: a comment is not closed by -->"):
        sgml_segments(b"<seg>a</seg>" + b"<!-- " * 100_000, PATH)
    with within(5):
        sgml_segments(b"<!-- -->" * 100_000, PATH)


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
    names = [side.file_name for side in sides]
    found = aligned([segments(side, tmp_path / side.file_name) for side in sides], names, "toy test")
    expected = [f"{name} {n} &" for name in documents for n in range(1, lengths[name] + 1)]
    assert list(found) == [tuple(f"{word} {place}".encode() for word in ("zh", *words)) for place in expected]


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


TRANSLATORS = ["A", "O'Brien", 'the "second"', "]|//ref", "ü"]


def lines(path, content: bytes, translator=None) -> list[bytes]:
    path.write_bytes(content)
    return list(read_side(Side(source=path.name, translator=translator), path))


def xml(declaration: str = "") -> str:
    refs = "".join(
        f"<ref translator={name.replace('&', '&amp;')!r}><seg>by {number}</seg></ref>".replace("'the \"", "'the &quot;")
        for number, name in enumerate(TRANSLATORS)
    )
    return f'{declaration}<dataset><doc id="d1"><src><seg>text</seg></src>{refs}</doc></dataset>'


@pytest.mark.parametrize("number", range(len(TRANSLATORS)), ids=TRANSLATORS)
def test_translators_with_quotes_are_found(tmp_path, number):
    assert lines(tmp_path / "x.xml", xml().encode(), TRANSLATORS[number]) == [f"by {number}".encode()]


@pytest.mark.parametrize("translator", ["x'y", "']", '"', "none"])
def test_missing_translators_with_quotes_are_named(tmp_path, translator):
    with pytest.raises(UserError, match=r"x\.xml: document d1 has 0 of ref by translator "):
        lines(tmp_path / "x.xml", xml().encode(), translator)


ENCODINGS = ["klingon", "utf-7", "shift_jisx0213", "utf-16-le", "base64", "ucs-4", "\u00fcnicode"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_xml_in_unknown_encodings_is_refused_in_one_line(tmp_path, encoding):
    content = xml(f'<?xml version="1.0" encoding="{encoding}"?>').encode()
    with pytest.raises(UserError, match=r"x\.xml: damaged \(.+\); remove it"):
        lines(tmp_path / "x.xml", content)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        *(("utf8", "ü"), ("UTF8", "你"), ("cp65001", "ü"), ("gb18030", "你好"), ("big5", "你好")),
        *(("Shift_JIS", "日本"), ("euc-kr", "한국")),
    ],
)
def test_xml_in_encodings_unknown_to_expat_is_read(tmp_path, encoding, text):
    content = f'<?xml version="1.0" encoding="{encoding}"?><x><doc><src><seg>{text}</seg></src></doc></x>'
    assert lines(tmp_path / "x.xml", content.encode("utf-8" if encoding == "cp65001" else encoding)) == [text.encode()]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-be", "utf-16-le"])
@pytest.mark.parametrize("name", ["x.xml", "x.xml.gz"])
def test_xml_is_decompressed_and_ends_in_a_whole_line(tmp_path, name, encoding):
    """The last byte of a line feed in UTF-16 is an end of line of its own, or none."""
    content = f"\ufeff{xml()}\n".encode(encoding)
    assert lines(tmp_path / name, gzip.compress(content) if name.endswith(".gz") else content) == [b"text"]


@pytest.mark.parametrize("name", ["x.sgml", "x.SGM", "x.Sgml.GZ", "x.XML"])
def test_segments_are_read_whatever_the_spelling_of_the_suffix(tmp_path, name):
    content = b'<doc><src>\n<seg id="1">one</seg>\n<seg id="2">two</seg></src></doc>'
    content = b"<x>" + content + b"</x>" if name.endswith("XML") else content
    assert lines(tmp_path / name, gzip.compress(content) if name.endswith("GZ") else content) == [b"one", b"two"]


def test_compressed_test_set_of_gigabytes_is_refused_at_once(tmp_path):
    (tmp_path / "x.xml.gz").write_bytes(gzip.compress(b" " * (1 << 20)) * 1000)
    with within(5), pytest.raises(UserError, match=r"x\.xml\.gz: its .* bytes expand to"):
        segments(Side(source="x.xml.gz"), tmp_path / "x.xml.gz")


@pytest.mark.parametrize("inside", [b"a", b"a ", b"a=", b"a='", b'a="', b"-", b" "])
def test_long_sgml_tags_take_linear_time(tmp_path, inside):
    content = b"<doc " + inside * 500_000 + b"><seg id=" + inside * 500_000 + b">text</seg></doc>"
    with within(5):
        assert lines(tmp_path / "x.sgm", content) == [b"text"]


def test_entities_of_entities_are_refused(tmp_path):
    inner = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(12))
    content = f'<!DOCTYPE x [<!ENTITY e0 "ha">{inner}]><x><doc><src><seg>&e12;</seg></src></doc></x>'
    with within(5), pytest.raises(UserError, match=r"x\.xml: damaged"):
        lines(tmp_path / "x.xml", content.encode())


@pytest.mark.parametrize("unit", [b"<seg id='1'> text ", b"<seg ", b"<seg", b"</seg>", b"<", b"<seg x='<seg>'>"])
def test_sgml_without_closing_tags_takes_linear_time(tmp_path, unit):
    refused = pytest.raises(UserError, match=r"is not closed by </seg>|has no segment <seg>")
    with within(5), refused:
        lines(tmp_path / "x.sgm", unit * 200_000)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "ascii"])
@pytest.mark.parametrize("name", ["x.sgm", "x.xml"])
def test_test_set_without_a_segment_is_refused(tmp_path, name, encoding):
    content = "<x></x>" if encoding == "ascii" or name == "x.xml" else '<doc docid="d"><seg id="1">a</seg></doc>'
    with pytest.raises(UserError, match=r"has no segment <seg>|damaged"):
        lines(tmp_path / name, content.encode(encoding))


def test_unclosed_segment_is_named_by_its_number(tmp_path, seed):
    rng = random.Random(seed)
    segments = [f'<seg id="{n}">line {n}</seg>' for n in range(1, 20)]
    broken = rng.randrange(len(segments))
    segments[broken] = segments[broken].removesuffix("</seg>")
    with pytest.raises(UserError, match=rf"x\.sgm: segment {broken + 1} is not closed"):
        lines(tmp_path / "x.sgm", "\n".join(segments).encode())


def test_line_of_a_gigabyte_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.data.fetch.untrusted.LONGEST_LINE", 1000)
    with pytest.raises(UserError, match="has a line of more than 1000 bytes"):
        lines(tmp_path / "x.txt", b"short\n" + b"x" * 1001)
    assert lines(tmp_path / "x.txt", b"short\n" + b"x" * 999 + b"\n")[0] == b"short"


@pytest.mark.parametrize("unit", [b"\n", b"ab\n", b"\r\n"])
def test_compressed_blank_lines_are_refused_within_seconds(tmp_path, monkeypatch, unit):
    monkeypatch.setattr("pipeline.data.fetch.untrusted.FREE_LINES", 1_000_000)
    path = tmp_path / "x.txt.gz"
    path.write_bytes(gzip.compress(unit * ((1 << 20) // len(unit))) * 120)
    refused = pytest.raises(UserError, match=r"x\.txt\.gz: has 1,\d{3},\d{3} lines or more, nearly all of them blank")
    with within(5), refused:
        for _ in read_side(Side(source=path.name), path):
            pass


def test_corpus_with_more_blank_lines_than_text_is_read(tmp_path, monkeypatch, seed):
    monkeypatch.setattr("pipeline.data.fetch.untrusted.FREE_LINES", 1000)
    rng = random.Random(seed)
    expected = [b"x" * rng.randrange(30, 90) if rng.random() < 0.1 else b"" for _ in range(30_000)]
    assert lines(tmp_path / "x.txt", b"".join(line + b"\n" for line in expected)) == expected


@pytest.mark.parametrize("size", [1, 3, 1 << 18])
def test_lines_do_not_depend_on_the_blocks_they_are_read_in(monkeypatch, seed, size):
    monkeypatch.setattr("pipeline.data.fetch.untrusted.BLOCK", size)
    rng = random.Random(seed)
    for _ in range(50):
        content = bytes(rng.choices(b"ab\r\n\n", k=rng.randrange(30)))
        expected = [line.removesuffix(b"\n") for line in io.BytesIO(content)]
        assert list(lines_in(io.BytesIO(content), Path("x"))) == expected
