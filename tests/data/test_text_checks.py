import hashlib

import pytest
from made_records import decoded

from pipeline.core.digests import require_digest
from pipeline.core.errors import UserError
from pipeline.data.text.checks import check_untokenised, read_lines, training_digest


def test_lines_end_at_the_line_feed_alone(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("a\u2028b\x0cc\r\nd\n\ne".encode())
    assert read_lines(path) == ["a\u2028b\x0cc\r", "d", "", "e"]
    path.write_bytes(b"a\n\n")
    assert read_lines(path) == ["a", ""]
    path.write_bytes(b"")
    assert read_lines(path) == []


def test_a_byte_order_mark_is_no_part_of_the_first_line_alone(tmp_path):
    (tmp_path / "text").write_bytes(b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n")
    assert read_lines(tmp_path / "text") == ["a", "\ufeffb"]


def test_missing_or_non_utf8_text_is_named(tmp_path):
    (tmp_path / "text").write_bytes(b"ab\xff")
    with pytest.raises(UserError, match=r"text: is not UTF-8 \(invalid start byte\)"):
        read_lines(tmp_path / "text")
    with pytest.raises(UserError, match="no such file"):
        read_lines(tmp_path / "nothing")


def test_a_wrong_number_of_lines_or_digest_is_refused(tmp_path):
    path = tmp_path / "test.de"
    path.write_text("ja\n", encoding="utf-8")
    assert read_lines(path, expected=1) == ["ja"]
    require_digest(path, hashlib.sha256(b"ja\n").hexdigest(), "")
    require_digest(tmp_path / "not even read", None, "")
    with pytest.raises(UserError, match="1 lines, but the test set has 3003"):
        read_lines(path, expected=3003)
    with pytest.raises(UserError, match=r"test.de: sha256 is .*, expected 00; prepare it again"):
        require_digest(path, "00", "prepare it again")


def test_tokenised_text_is_distinguished_from_raw():
    raw = ["Er kam, sah und ging.", "Wo ist A. ?", "Ein Wort", "Quand même !", "Un mot."] * 20
    check_untokenised("raw", raw)
    check_untokenised("raw", ["One odd line .", *raw])
    check_untokenised("raw", [])
    check_untokenised("code", [*["ls -l"] * 200, "cp a .", "find ."])
    check_untokenised("zh", [*["我们走吧。"] * 500, *["OK."] * 10, "Mr .", "Dr ."])
    check_untokenised("raw", [*["Well . . ."] * 20, *["Yes."] * 80])
    with pytest.raises(UserError, match="looks tokenised"):
        check_untokenised("tok", ["Er kam , sah und ging .", "Un mot ."] * 10)
    with pytest.raises(UserError, match="looks tokenised"):
        check_untokenised("tok", ["it &apos;s", "fine"])


def test_decoded_text_names_the_training_behind_it(tmp_path):
    assert training_digest(tmp_path / "test.txt") is None
    decoded(training="abc", weights="of averaged checkpoints").write(tmp_path / "test.json")
    assert training_digest(tmp_path / "test.txt") == "abc"
