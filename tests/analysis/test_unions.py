"""Every kind of cell, claim and figure is in the union that settings are validated by."""

import importlib
import pkgutil
from inspect import isclass
from typing import get_args

import pytest

from pipeline.analysis import cells, claims, figures
from pipeline.analysis.cells.cell import Cell
from pipeline.analysis.claims.claim import Claim
from pipeline.analysis.figures.figure import Figure


@pytest.mark.parametrize(
    ("package", "union", "base"),
    [(claims, claims.AnyClaim, Claim), (cells, cells.AnyCell, Cell), (figures, figures.AnyFigure, Figure)],
)
def test_every_class_with_a_kind_is_in_its_union(package, union, base):
    names = [f"{package.__name__}.{module.name}" for module in pkgutil.iter_modules(package.__path__)]
    classes = [inner for name in names for inner in vars(importlib.import_module(name)).values() if isclass(inner)]
    found = {inner for inner in classes if issubclass(inner, base) and "kind" in inner.model_fields}
    assert found == set(get_args(get_args(union)[0]))
