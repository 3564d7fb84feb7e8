"""SGML and XML test sets that are damaged, or written to make a parser hang."""

import gzip
import io
import random
import time
from pathlib import Path

import pytest

from pipeline.core.errors import UserError
from pipeline.data.dataset.parallel import Side
from pipeline.data.fetch.raw_text import read_lines
from pipeline.data.fetch.untrusted import lines_in

TRANSLATORS = ["A", "O'Brien", 'the "second"', "]|//ref", "ü"]


def lines(path, content: bytes, translator=None) -> list[bytes]:
    path.write_bytes(content)
    return list(read_lines(Side(source=path.name, translator=translator), path))


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


@pytest.mark.parametrize("encoding", ["klingon", "utf-7", "shift_jis", "cp65001", "base64", "ucs-4", "\u00fcnicode"])
def test_xml_in_unknown_encodings_is_refused_in_one_line(tmp_path, encoding):
    content = xml(f'<?xml version="1.0" encoding="{encoding}"?>').encode()
    with pytest.raises(UserError, match=r"x\.xml: damaged \(.+\); remove it"):
        lines(tmp_path / "x.xml", content)


def test_entities_of_entities_are_refused(tmp_path):
    inner = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(12))
    content = f'<!DOCTYPE x [<!ENTITY e0 "ha">{inner}]><x><doc><src><seg>&e12;</seg></src></doc></x>'
    began = time.monotonic()
    with pytest.raises(UserError, match=r"x\.xml: damaged"):
        lines(tmp_path / "x.xml", content.encode())
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("unit", [b"<seg id='1'> text ", b"<seg ", b"<seg", b"</seg>", b"<", b"<seg x='<seg>'>"])
def test_sgml_without_closing_tags_takes_linear_time(tmp_path, unit):
    began = time.monotonic()
    try:
        assert not any(lines(tmp_path / "x.sgm", unit * 200_000))
    except UserError as error:
        assert "is not closed by </seg>" in str(error) or "has no segment <seg>" in str(error)
    assert time.monotonic() - began < 5


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
def test_compressed_blank_lines_are_refused_within_seconds(tmp_path, unit):
    path = tmp_path / "x.txt.gz"
    path.write_bytes(gzip.compress(unit * ((1 << 20) // len(unit))) * 1200)
    began = time.process_time()
    with pytest.raises(UserError, match=r"x\.txt\.gz: has 10,\d{3},\d{3} lines or more, nearly all of them blank"):
        for _ in read_lines(Side(source=path.name), path):
            pass
    assert time.process_time() - began < 5


def test_corpus_with_more_blank_lines_than_text_is_read(tmp_path, monkeypatch, seed):
    monkeypatch.setattr("pipeline.data.fetch.untrusted.FREE_LINES", 1000)
    rng = random.Random(seed)
    expected = [b"x" * rng.randrange(30, 90) if rng.random() < 0.1 else b"" for _ in range(300_000)]
    assert lines(tmp_path / "x.txt", b"".join(line + b"\n" for line in expected)) == expected


@pytest.mark.parametrize("size", [1, 3, 1 << 18])
def test_lines_do_not_depend_on_the_blocks_they_are_read_in(monkeypatch, seed, size):
    monkeypatch.setattr("pipeline.data.fetch.untrusted.BLOCK", size)
    rng = random.Random(seed)
    for _ in range(50):
        content = bytes(rng.choices(b"ab\r\n\n", k=rng.randrange(30)))
        expected = [line.removesuffix(b"\n") for line in io.BytesIO(content)]
        assert list(lines_in(io.BytesIO(content), Path("x"))) == expected
