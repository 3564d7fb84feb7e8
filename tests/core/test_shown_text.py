"""Secrets in addresses never reach a log."""

import random
import string

import pytest

from pipeline.core.errors import printable_lines

SIGNS = string.ascii_letters + string.digits + "/:!$*+,;._~%-"


@pytest.mark.parametrize("seed", range(20))
def test_passwords_and_query_values_are_left_out(seed):
    rng = random.Random(seed)
    password, token = ("".join(rng.choices(SIGNS, k=12)) + "Zx9" for _ in range(2))
    line = f"https://me:{password}@host.org/a/b.gz?token={token}&part=7 at /a/b.gz?token={token} (status 403)"
    shown = printable_lines(line)
    assert password not in shown and token not in shown
    assert shown == "https://…@host.org/a/b.gz?token=…&part=… at /a/b.gz?token=… (status 403)"


@pytest.mark.parametrize("before", ["#", "?a=…&amp;", "#b=…&"])
def test_values_in_fragments_and_markup_are_left_out(before):
    assert printable_lines(f"https://host/file{before}token=Zx9") == f"https://host/file{before}token=…"


@pytest.mark.parametrize("password", ["a/b", "/", "p@ss", "x?y", "80/a", "a//b:c/"])
def test_passwords_may_hold_signs_that_end_an_address(password):
    assert printable_lines(f"http://me:{password}@host/file: gone") == "http://…@host/file: gone"


@pytest.mark.parametrize(
    "text",
    [
        "https://host.org:8080/a/b.tar.gz: status 404",
        "https://host.org/~me/package-1.0.tgz, https://other.org/x",
        "mail me@host.org about a=b & c=d",
        "beam=8,alpha=0.6",
    ],
)
def test_text_without_secrets_stays_as_it_is(text):
    assert printable_lines(text) == text
