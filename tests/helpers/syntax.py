"""Statements of modules, without a walk over their expressions, which are ten times as many nodes."""

import ast
from collections.abc import Iterator

BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
"""Attributes of a statement that hold others."""


def statements(module: ast.AST) -> Iterator[ast.AST]:
    """Yield a module and everything below it that holds statements or is one, outer ones first."""
    yield module
    for name in BLOCKS:
        for inner in getattr(module, name, ()):
            yield from statements(inner)
