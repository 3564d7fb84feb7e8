"""Text as it may be shown in a line, a log and a terminal."""

import re
from typing import Any


def one_line(text: str, longest: int = 5000) -> str:
    """A text with its line breaks and other characters that can't be shown escaped, cut where it is long."""
    line = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)
    return line if len(line) <= longest else f"{line[:longest]}…"


def lines_shown(text: str) -> str:
    """The same of a text of several lines, none of which is cut; secrets in addresses are left out."""
    text = without_secrets(text)
    return text if text.isprintable() else "\n".join(one_line(line, len(text)) for line in text.split("\n"))


USER = re.compile(r"(?<=://)(?:[^/\s]+@|[^/\s@]*:[^\s@]*@)")
"""Name and password in an address. A slash in a password ends the host for a browser, and is masked all the same."""
QUERY = re.compile(r"(?<=[?&])([\w.~%\[\]-]+)=[^&\s\"'<>#]+")
"""A key in an address with its value, such as a token or a signature."""


def without_secrets(text: str) -> str:
    """Return a text with user names, passwords and the values of queries left out of its addresses."""
    if "://" in text:
        text = USER.sub("…@", text)
    return QUERY.sub(r"\1=…", text) if "=" in text else text


def shown(value: Any, longest: int = 80) -> str:
    """A value in an error: on one line, and cut where it is long."""
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= longest else f"{text[:longest]}…"
