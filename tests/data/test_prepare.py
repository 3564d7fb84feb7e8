"""Cleaning leaves out exactly the lines that it counts; dev and test lines are kept or rejected."""

import numpy as np
import pytest
from toy_corpus import make_dataset, random_lines, write_raw, write_toy_raw

from pipeline.core.digests import sha256_file
from pipeline.core.errors import UserError
from pipeline.core.records.corpus import PreparedPairs
from pipeline.data.text.cleaning import prepare_chunk
from pipeline.data.text.prepare import prepare

GOOD = (b"two dogs run", b"zwei Hunde laufen")
BAD = {
    "empty": [
        *((b"", b"ja"), (b"yes", b"  \t "), (b"\r", b"ja"), ("\u00a0".encode(), b"ja"), (b"\x01\x02", b"ja")),
        *(("\u200b\u200e".encode(), b"ja"), (b"yes", "\u00ad \u2060".encode())),
    ],
    "invalid UTF-8": [(b"caf\xe9", b"ja"), (b"yes", b"\xff\xfe")],
    "too long": [(b"a " * 21, b"b " * 20), (b"a " * 20, b"b " * 21)],
    "length ratio": [(b"a b c d", b"e"), (b"a", b"b c d e")],
}


def lines_of(path):
    return path.read_bytes().decode().split("\n")[:-1]


@pytest.mark.parametrize("reason", BAD)
def test_each_fault_is_counted_under_its_reason(reason):
    for bad in BAD[reason]:
        chunk = prepare_chunk([GOOD, bad, GOOD], make_dataset(), drop_outliers=True)
        assert chunk.rejected == [(1, reason)]
        assert chunk.text == ("two dogs run\n" * 2, "zwei Hunde laufen\n" * 2) and chunk.words == (6, 6)


def test_limits_are_inclusive():
    pairs = [(b"a " * 20, b"b " * 20), (b"a b c", b"d")]
    assert not prepare_chunk(pairs, make_dataset(), drop_outliers=True).rejected


def test_the_report_adds_up_on_random_faults(tmp_path, seed):
    generator = np.random.default_rng(seed)
    pairs = [(line.encode(), line.encode()) for line in random_lines(1300, seed, longest=6)]  # never 20 tokens
    expected = dict.fromkeys(BAD, 0)
    for place in generator.choice(len(pairs), 200, replace=False):
        reason = generator.choice(list(BAD))
        pairs[place] = BAD[reason][generator.integers(len(BAD[reason]))]
        expected[reason] += 1
    write_toy_raw(tmp_path)
    write_raw(tmp_path, "train", *zip(*pairs, strict=True))
    for processes in (1, 2):
        report = prepare(make_dataset(), tmp_path, processes).splits["train"]
        assert report.read == 1300 and report.kept == 1100 and report.rejected == expected
        assert report == PreparedPairs.read(tmp_path / "prepared/report.json").splits["train"]
    for name in ("train.en", "train.de", "train.tok.en", "train.tok.de"):
        assert len(lines_of(tmp_path / "prepared" / name)) == 1100
    place = report.rejected_lines["empty"][0] - 1
    assert pairs[place] in BAD["empty"]


def test_processes_do_not_change_a_byte(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.data.text.prepare.PAIRS_PER_CHUNK", 100)
    write_toy_raw(tmp_path)
    digests = []
    for processes in (1, 2):
        prepare(make_dataset(), tmp_path, processes)
        digests.append({path.name: sha256_file(path) for path in (tmp_path / "prepared").iterdir()})
    assert digests[0] == digests[1]


def prepared(corpus, split: str, src, tgt, **changes):
    """Prepare toy text with other lines in one split, and return the report of the split."""
    write_toy_raw(corpus)
    write_raw(corpus, split, src, tgt)
    return prepare(make_dataset(**changes), corpus, 1).splits[split]


def test_only_newlines_end_lines_and_returns_become_spaces(tmp_path):
    odd = ["one\rtwo", "one\u2028two", "one\x85two", "one\x0btwo", "one two\r"]
    report = prepared(tmp_path, "train", odd, odd)
    assert report.kept == 5 and report.repaired == {"carriage return": 2}
    assert lines_of(tmp_path / "prepared/train.en") == ["one two", odd[1], odd[2], odd[3], "one two"]
    assert lines_of(tmp_path / "prepared/train.tok.en") == ["one two"] * 5


@pytest.mark.parametrize("lowercase", [False, True])
def test_text_is_tokenised_unescaped_and_lowercased_on_demand(tmp_path, lowercase):
    prepared(tmp_path, "train", ["Don't, say <A> & go."], ["Ja: 3,5 % sind es."], lowercase=lowercase)
    texts = {name: lines_of(tmp_path / f"prepared/train.{name}") for name in ("en", "tok.en", "tok.de")}
    tokens = {"tok.en": ["Don 't , say < A > & go ."], "tok.de": ["Ja : 3,5 % sind es ."]}
    if lowercase:
        tokens = {name: [line.lower() for line in lines] for name, lines in tokens.items()}
    assert texts == {"en": ["Don't, say <A> & go."]} | tokens


@pytest.mark.parametrize("reason", ["empty", "invalid UTF-8"])
@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_bad_dev_or_test_line_is_an_error_with_its_number(tmp_path, split, reason):
    with pytest.raises(UserError, match=rf"{split}.en, {split}.de: line 3: {reason}"):
        prepared(tmp_path, split, *zip(GOOD, GOOD, BAD[reason][0], GOOD, strict=True))


def test_long_dev_and_test_lines_are_kept(tmp_path):
    assert prepared(tmp_path, "test", *zip(GOOD, *BAD["too long"], *BAD["length ratio"], strict=True)).kept == 5


@pytest.mark.parametrize("cut", ["en", "de"])
def test_misaligned_sides_are_an_error_with_both_counts(tmp_path, cut):
    write_toy_raw(tmp_path, pairs=50)
    path = tmp_path / f"raw/train.{cut}"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-3]))
    counts = "47.*50" if cut == "en" else "50.*47"
    with pytest.raises(UserError, match=f"has {counts}"):
        prepare(make_dataset(), tmp_path, 2)
    assert not (tmp_path / "prepared/report.json").exists()


def test_a_split_is_asserted_by_count_and_digest(tmp_path):
    write_toy_raw(tmp_path)
    digest = sha256_file(tmp_path / "raw/test.de")
    prepare(make_dataset(expected={"test": {"lines": 20, "tgt_sha256": digest}}), tmp_path, 1)
    with pytest.raises(UserError, match=r"raw/test.en: 20 lines, expected 21"):
        prepare(make_dataset(expected={"test": {"lines": 21}}), tmp_path, 1)
    with pytest.raises(UserError, match=rf"raw/test.de: sha256 is {digest}, expected {'0' * 64}"):
        prepare(make_dataset(expected={"test": {"lines": 20, "tgt_sha256": "0" * 64}}), tmp_path, 1)


def test_split_without_any_sentence_left_is_an_error(tmp_path):
    with pytest.raises(UserError, match="cleaning leaves no pair"):
        prepared(tmp_path, "train", [b"", b""], [b"a", b"b"])


def test_missing_raw_files_name_the_stage_to_run(tmp_path):
    with pytest.raises(UserError, match=r"train.en: no such file; run the stage"):
        prepare(make_dataset(), tmp_path, 1)


def test_byte_order_marks_are_no_part_of_the_first_words(tmp_path):
    lines = [f"A dog number {number} sleeps .".encode() for number in range(6)]
    prepared = {}
    for name, mark in (("plain", b""), ("marked", b"\xef\xbb\xbf")):
        begins = (b"", mark, b"", mark, b"", b"")  # raw splits are made of several files, one after the other
        raw = [(begin + line, begin + line) for begin, line in zip(begins, lines, strict=True)]
        prepared[name] = prepare_chunk(raw, make_dataset(), drop_outliers=False)
    assert prepared["marked"] == prepared["plain"] and prepared["plain"].pairs == 6
