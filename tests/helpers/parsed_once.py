"""Each text of YAML is parsed once: hundreds of tests and commands load the same settings files."""

import pickle
from collections.abc import Callable
from typing import Any


def parse_once(parse: Callable[[str, str], Any]) -> Callable[[str, str], Any]:
    """Return a parser that parses a text once, wherever it lies, and returns a copy of its own to each caller."""
    parsed: dict[str, bytes] = {}

    def parse_if_new(text: str, where: str) -> Any:
        if text not in parsed:
            parsed[text] = pickle.dumps(parse(text, where))
        return pickle.loads(parsed[text])

    return parse_if_new
