"""The architectures: every folder of this package whose settings.py has settings of an `architecture`.

    pipeline/models/<architecture>/settings.py   a ModelSettings with `architecture: Literal["<architecture>"]`
    pipeline/models/<architecture>/flops.py      forward_products(config, shape): multiply-adds of a forward pass
    pipeline/models/<architecture>/model.py      build(config, vocab_sizes): the model

Nothing else names an architecture: configuration, schemas, forecasts, training and decoding follow. Only model.py may
import torch; here it is looked at without being imported, so that what is missing is said before any job starts.
"""

import pkgutil
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import get_args

import pipeline.models
from pipeline.core.errors import UserError
from pipeline.models.settings import ModelSettings

FUNCTIONS = {"flops": "forward_products", "model": "build"}
"""What has to be in the other files of a folder."""


def architectures() -> dict[str, type[ModelSettings]]:
    """The settings of each architecture, by name. Raises UserError when a folder lacks a part."""
    folders = [module.name for module in pkgutil.iter_modules(pipeline.models.__path__) if module.ispkg]
    found = {folder: settings for folder in folders if (settings := settings_of(folder))}
    for folder, settings in found.items():
        check(folder, settings)
    return found


def module_name(folder: str, part: str) -> str:
    return f"pipeline.models.{folder}.{part}"


def part_of(config: ModelSettings, part: str) -> ModuleType:
    """The file `part` of the folder of an architecture."""
    return import_module(module_name(config.architecture, part))


def settings_of(folder: str) -> type[ModelSettings] | None:
    """None where the folder is of no architecture."""
    if find_spec(module_name(folder, "settings")) is None:
        return None
    module = import_module(module_name(folder, "settings"))
    own = [kind for kind in vars(module).values() if isinstance(kind, type) and kind.__module__ == module.__name__]
    names = {
        name: kind
        for kind in own
        if issubclass(kind, ModelSettings)
        for name in get_args(kind.model_fields["architecture"].annotation)
    }
    if names and list(names) != [folder]:
        raise UserError(f"{module.__file__}: architecture must be Literal[{folder!r}], as its folder, got {[*names]}")
    return names.get(folder)


def check(folder: str, settings: type[ModelSettings]) -> None:
    """Raises UserError unless the folder has all that an architecture needs."""
    if lacking := sorted(getattr(settings, "__abstractmethods__", ())):
        raise UserError(f"pipeline/models/{folder}/settings.py: {settings.__name__} has no {', '.join(lacking)}")
    for part, function in FUNCTIONS.items():
        spec = find_spec(module_name(folder, part))
        text = Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""
        if not re.search(rf"^def {function}\(", text, re.MULTILINE):
            raise UserError(f"pipeline/models/{folder}/{part}.py: an architecture needs a function `{function}` here")
