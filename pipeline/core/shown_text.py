"""Text as it may be shown in a line, a log and a terminal."""

import re
from typing import Any


def one_line(text: str, longest: int = 5000) -> str:
    """A text with its line breaks and other characters that can't be shown escaped, cut where it is long."""
    line = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)
    return line if len(line) <= longest else f"{line[:longest]}…"


def lines_shown(text: str) -> str:
    """The same of a text of several lines, none of which is cut; names and passwords in addresses are left out."""
    text = re.sub(r"(?<=://)[^/\s]+@", "…@", text)
    return text if text.isprintable() else "\n".join(one_line(line, len(text)) for line in text.split("\n"))


def shown(value: Any, longest: int = 80) -> str:
    """A value in an error: on one line, and cut where it is long."""
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= longest else f"{text[:longest]}…"
