"""Reprise: the stages that take a paper from raw data to its printed tables. Knows nothing of Snakemake.

For use in Python, `open_run`, `table`, `claims` and `curves` (reprise/interface.py) are here by name.
"""

import importlib
from typing import Any

__all__ = ["claims", "curves", "open_run", "table"]


def __dir__() -> list[str]:
    """What is here by name, too: notebooks complete by it."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module("reprise.interface"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
