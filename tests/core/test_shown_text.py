"""Numbers agree with their nouns, and secrets in addresses never reach a log."""

import random
import string

import pytest
from time_limit import within

from pipeline.core.errors import count_of, printable_lines

SIGNS = string.ascii_letters + string.digits + "/:!$*+,;._~%-"


@pytest.mark.parametrize("seed", range(20))
def test_passwords_and_query_values_are_left_out(seed):
    rng = random.Random(seed)
    password, token = ("".join(rng.choices(SIGNS, k=12)) + "Zx9" for _ in range(2))
    line = f"https://me:{password}@host.org/a/b.gz?token={token}&part=7 at /a/b.gz?token={token} (status 403)"
    shown = printable_lines(line)
    assert password not in shown and token not in shown
    assert shown == "https://…@host.org/a/b.gz?token=…&part=… at /a/b.gz?token=… (status 403)"


@pytest.mark.parametrize("part", ["://", "://:", "http://a:", ":", "a:"])
def test_text_of_many_beginnings_of_addresses_is_soon_shown(part):
    text = "http://" + part * 50_000
    with within(5):
        assert printable_lines(text) == text


@pytest.mark.parametrize(
    ("words", "zero", "one", "two"),
    [
        (("run",), "0 runs", "1 run", "2 runs"),
        (("entry", "entries"), "0 entries", "1 entry", "2 entries"),
        (("file is", "files are"), "0 files are", "1 file is", "2 files are"),
    ],
)
def test_nouns_agree_with_their_number(words, zero, one, two):
    assert [count_of(number, *words) for number in range(3)] == [zero, one, two]


PLAIN = [
    "https://host.org:8080/a/b.tar.gz: status 404",
    "https://host.org/~me/package-1.0.tgz, https://other.org/x",
    "mail me@host.org about a=b & c=d",
    "beam=8,alpha=0.6",
]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *((f"https://host/file{it}token=Zx9", f"https://host/file{it}token=…") for it in ("#", "?a=…&amp;", "#b=…&")),
        *((f"http://me:{it}@host/file: gone", "http://…@host/file: gone") for it in ("a/b", "/", "p@ss", "x?y")),
        *((f"http://me:{it}@host/file: gone", "http://…@host/file: gone") for it in ("80/a", "a//b:c/")),
        *((text, text) for text in PLAIN),
    ],
)
def test_secrets_with_signs_of_addresses_are_left_out_alone(text, shown):
    assert printable_lines(text) == shown
