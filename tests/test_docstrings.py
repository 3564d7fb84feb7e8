"""Docstrings of public functions say what their parameters mean, the shapes of tensors, and what is raised.

ruff checks the form of the sections that are there; these tests check that they are there.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from syntax import statements

from pipeline.core.provenance import ROOT

Function = ast.FunctionDef | ast.AsyncFunctionDef
REFERENCE = re.compile(r"\b(?:as|see) `(?:\w+\.)*(\w+)`")
TOLD = {"paper", "table", "figure", "system", "dataset", "split", "decoding"}
"""Parameters that hold the name of what they are called after."""
SHAPE = re.compile(r"\([^()]*[\w…]\s*,[^()]*\)|\([\w…]+\)|scalar|[Ss]hape")


@cache
def modules() -> list[tuple[Path, ast.Module]]:
    paths = [path for package in ("pipeline", "reprise") for path in sorted((ROOT / package).rglob("*.py"))]
    return [(path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


def public(body: list[ast.stmt], owner: ast.ClassDef | None = None) -> Iterator[tuple[Function, ast.ClassDef | None]]:
    """Yield the public functions and methods of a module with their classes."""
    for node in body:
        if isinstance(node, Function) and not node.name.startswith("_"):
            yield node, owner
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public(node.body, node)


def base_names(owner: ast.ClassDef) -> list[str]:
    return [ast.unparse(base).split("[")[0].split(".")[-1] for base in owner.bases]


@cache
def definitions() -> list[Function | ast.ClassDef]:
    return [node for _, module in modules() for node in statements(module) if isinstance(node, Function | ast.ClassDef)]


def classes() -> list[ast.ClassDef]:
    return [node for node in definitions() if isinstance(node, ast.ClassDef)]


@cache
def documented_methods() -> tuple[dict[str, list[str]], dict[str, set[str]]]:
    """Return the bases, and the methods with a docstring, of every class by its name."""
    methods = {
        node.name: {method.name for method in node.body if isinstance(method, Function) and ast.get_docstring(method)}
        for node in classes()
    }
    return {node.name: base_names(node) for node in classes()}, methods


def is_inherited(name: str, bases: list[str]) -> bool:
    """Return whether a base class documents a method, so that an override needs no docstring."""
    bases_of, methods_of = documented_methods()
    return any(name in methods_of.get(base, ()) or is_inherited(name, bases_of.get(base, [])) for base in bases)


@cache
def documented() -> list[tuple[str, Function, str]]:
    """Return place, node and docstring of every public function but overriding methods and overloads."""
    found = []
    for path, module in modules():
        for node, owner in public(module.body):
            text = ast.get_docstring(node) or ""
            decorated = [ast.unparse(decorator) for decorator in node.decorator_list]
            if not text and owner is not None and is_inherited(node.name, base_names(owner)):
                continue
            if not any(decorator.endswith(("setter", "overload")) for decorator in decorated):
                found.append((f"{path}:{node.lineno} {node.name}", node, text))
    return found


def parameters(node: Function) -> list[str]:
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    return [argument.arg for argument in arguments if argument.arg not in ("self", "cls")]


@cache
def own_types() -> set[str]:
    """Return the names of all classes and type aliases of the product."""
    top_level = [node for _, module in modules() for node in module.body]
    aliases = {name.id for node in top_level if isinstance(node, ast.Assign) for name in node.targets if is_alias(name)}
    return aliases | {node.name for node in classes()}


def is_alias(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id[0].isupper() and not target.id.isupper()


@cache
def untold(node: Function) -> list[str]:
    """Return the parameters whose meaning neither their type, if it is our own, nor a common name says."""
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    told = {
        argument.arg
        for argument in arguments
        if own_types() & set(re.findall(r"\w+", ast.unparse(argument.annotation) if argument.annotation else ""))
    }
    return [name for name in parameters(node) if name not in told | TOLD]


def has_tensors(node: Function) -> bool:
    annotated = [node.args, *([node.returns] if node.returns else [])]
    return any("Tensor" in name_of(inner) for part in annotated for inner in ast.walk(part))


def name_of(node: ast.AST) -> str:
    return str(getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "value", ""))


def says_parameters(node: Function, text: str) -> bool:
    """Return whether a docstring has a section, names each parameter, or refers to a function with the same ones."""
    if not parameters(node):
        return "Returns:" in text or says_shapes(node, text)
    return "Args:" in text or all(f"`{name}`" in text for name in untold(node)) or refers(text)


def says_shapes(node: Function, text: str) -> bool:
    return bool(SHAPE.search(text)) or refers(text)


def refers(text: str) -> bool:
    """Return whether a docstring refers to a function or class of the product that has a docstring itself."""
    return not documented_names().isdisjoint(REFERENCE.findall(text))


@cache
def documented_names() -> set[str]:
    return {node.name for node in definitions() if ast.get_docstring(node)}


def raised(node: Function) -> set[str]:
    """Return the exceptions that a function raises itself, as it names them."""
    nodes = statements(node)
    return {ast.unparse(inner.exc).partition("(")[0] for inner in nodes if isinstance(inner, ast.Raise) and inner.exc}


def says_raised(node: Function, text: str) -> bool:
    """Return whether a docstring says what is raised; a check of a setting refuses it by a ValueError."""
    return "Raises:" in text or (text.startswith("Refuse ") and raised(node) == {"ValueError"})


CHECKS = {
    "docstring": (lambda node: True, lambda node, text: bool(text)),
    "Args": (lambda node: has_tensors(node) or len(untold(node)) > 1, says_parameters),
    "shapes": (has_tensors, says_shapes),
    "Raises": (raised, says_raised),
}


@pytest.mark.parametrize("section", CHECKS)
def test_public_functions_document(section):
    concerned, is_said = CHECKS[section]
    asked = [(place, node, text) for place, node, text in documented() if concerned(node)]
    missing = [place for place, node, text in asked if not is_said(node, text)]
    assert len(asked) > 100
    assert len(missing) <= 0.05 * len(asked), "\n".join(missing)
