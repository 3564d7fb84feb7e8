"""Errors for users, and the text that messages, logs and terminals may show."""

import os
import re
from collections.abc import Sequence
from typing import Any


class UserError(Exception):
    """Bad input, configuration or environment.

    The message says what is wrong, where, and what to do. It is shown as one line, without a traceback.
    """


class UnreadableError(UserError):
    """A file that cannot be read, so its content is unknown."""


class LostPeer(UserError, RuntimeError):
    """Another process of this training died or hangs.

    This process did not fail, and another start would not meet the same error.
    """


def command_advice(stage: str) -> str:
    """Return a `reprise` command for a user to type, with the settings of the running workflow.

    Outside of a workflow the settings are unknown, and the text says which options to add.
    """
    settings = os.environ.get("REPRISE_SETTINGS")
    unknown = " (with --set for each --config)" if settings is None else ""
    return f"`reprise {stage}{settings or ''}`{unknown}"


ENTER_ENVIRONMENT = "run `make env`, then `source .venv/bin/activate`"
"""The remedy for missing packages: create and enter the environment."""

REPAIR = f"run {command_advice('verify --repair')}, then the same command again"
"""The remedy for any file that is damaged or missing."""


def one_line(text: str, longest: int = 5000) -> str:
    """Return a `text` on one line, cut at `longest` characters, with unprintable characters escaped."""
    line = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)
    return line if len(line) <= longest else f"{line[:longest]}…"


def printable_lines(text: str) -> str:
    """Escape unprintable characters in each line, cut none, and mask secrets in addresses."""
    text = without_secrets(text)
    return text if text.isprintable() else "\n".join(one_line(line, len(text)) for line in text.split("\n"))


USER = re.compile(r"(?<=://)(?:[^/\s]+@|[^/\s@:]*:(?:(?!://)[^\s@])*@)")
"""Name and password in an address. Browsers end the host at a slash in a password; it is masked all the same.

The second form ends at the next `://`, or a text with very many of them would take quadratic time.
"""
QUERY = re.compile(r"(?:(?<=[?&#])|(?<=&amp;))([\w.~%\[\]-]+)=[^&\s\"'<>#]+")
"""A key and value in the query or fragment of an address, such as a token or a signature."""


def without_secrets(text: str) -> str:
    """Mask user names, passwords and query values in the addresses of a text."""
    if "://" in text:
        text = USER.sub("…@", text)
    return QUERY.sub(r"\1=…", text) if "=" in text else text


def count_of(number: int, one: str, several: str = "") -> str:
    """Return a number with its noun: `1 file`, `2 files`.

    Args:
        number: How many there are.
        one: The noun for one; a verb may follow it.
        several: The same for other numbers; by default with an `s` at its end.
    """
    return f"{number} {one if number == 1 else several or f'{one}s'}"


def in_hours(count: float) -> str:
    """Format hours as `1,240 h`, `3.2 h`, `12 min` or `8 s`."""
    if count >= 0.995:
        return f"{count:,.0f} h" if count >= 9.95 else f"{count:.1f} h"
    return f"{60 * count:.0f} min" if count >= 0.025 else f"{3600 * count:.0f} s"


def first_of(names: Sequence[str], most: int) -> str:
    """Join the first `most` of `names`, and count the others: `a, b and 3 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def shown(value: Any) -> str:
    """Return the representation of a `value` on one line, cut at 80 characters."""
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
