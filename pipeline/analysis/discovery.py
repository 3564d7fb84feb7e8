"""Kinds are found by being there: a module of their package defines a record that has a `kind`."""

import importlib
import pkgutil
from types import ModuleType
from typing import TypeVar

from pydantic import BaseModel

Base = TypeVar("Base", bound=BaseModel)


def kinds_in(package: ModuleType, base: type[Base]) -> tuple[type[Base], ...]:
    """Records derived from `base` that the modules of `package` define, in the order of the modules' names.

    Packages in it are left out: they hold what several kinds share.
    """
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__) if not module.ispkg)
    modules = [importlib.import_module(f"{package.__name__}.{name}") for name in names]
    return tuple(
        found
        for module in modules
        for found in vars(module).values()
        if isinstance(found, type) and issubclass(found, base) and found.__module__ == module.__name__
        if "kind" in found.model_fields
    )
