"""Reprise in Python: trained models, and tables, claims and curves as data frames.

    import reprise
    model = reprise.open_run("attention/base/wmt14-en-de/1", scale="small")

`open_run`, `table`, `claims` and `curves` (interface.py) are imported when they are first used.
"""

import importlib
from typing import Any

__all__ = ["claims", "curves", "open_run", "table"]  # noqa: F822 (made by __getattr__)


def __dir__() -> list[str]:
    """List the names for completion in notebooks."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module("reprise.interface"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
