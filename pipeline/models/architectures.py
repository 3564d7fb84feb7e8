"""Registry of architectures: every folder of this package that has a settings.py or a model.py.

    pipeline/models/<architecture>/__init__.py   makes the folder a package; a docstring is enough
    pipeline/models/<architecture>/settings.py   a ModelSettings with `architecture: Literal["<architecture>"]`
    pipeline/models/<architecture>/model.py      build(config, vocab_sizes), which returns the model

Nothing else names an architecture: configuration, schemas, forecasts, training and decoding follow from the folders.
Only model.py may import torch. It is checked without being imported, so that a missing part is reported before any job
starts.
"""

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pipeline.models
from pipeline.core.errors import UserError
from pipeline.models.settings import ModelSettings

if TYPE_CHECKING:
    from pipeline.models.seq2seq import Seq2Seq


def architectures() -> dict[str, type[ModelSettings]]:
    """Return the settings class of each architecture, by name.

    Raises:
        UserError: A folder lacks a part of an architecture.
    """
    names = ("settings.py", "model.py")
    parts = [part for path in pipeline.models.__path__ for name in names for part in Path(path).glob(f"*/{name}")]
    found = {folder.name: settings_of(folder) for folder in sorted({part.parent for part in parts})}
    for folder, settings in found.items():
        check(folder, settings)
    return found


def build_model(config: ModelSettings, vocab_sizes: tuple[int, int]) -> "Seq2Seq":
    """Return a model in training mode, with random weights from torch's global generator, on the default device.

    Args:
        config: Settings of the model; their class chooses the architecture.
        vocab_sizes: Source and target vocabulary, special symbols included.

    Raises:
        UserError: The vocabularies do not fit the settings.
    """
    return import_module(f"pipeline.models.{config.architecture}.model").build(config, vocab_sizes)


def settings_of(folder: Path) -> type[ModelSettings]:
    """Return the settings class of an architecture.

    Args:
        folder: Its folder.

    Raises:
        UserError: It has no `__init__.py` or settings, or the architecture is not named after the folder.
    """
    for part in ("__init__.py", "settings.py"):
        if not (folder / part).is_file():
            raise UserError(f"pipeline/models/{folder.name}/{part}: no such file; an architecture needs it")
    module = import_module(f"pipeline.models.{folder.name}.settings")
    own = [kind for kind in vars(module).values() if isinstance(kind, type) and kind.__module__ == module.__name__]
    names = {
        name: kind
        for kind in own
        if issubclass(kind, ModelSettings)
        for name in get_args(kind.model_fields["architecture"].annotation)
    }
    if list(names) != [folder.name]:
        raise UserError(
            f"{module.__file__}: one class needs `architecture: Literal[{folder.name!r}]`, the folder's name "
            f"(got {[*names]})"
        )
    return names[folder.name]


def check(folder: str, settings: type[ModelSettings]) -> None:
    """Check that a folder of `pipeline.models` has all parts of an architecture."""
    if lacking := sorted(getattr(settings, "__abstractmethods__", ())):
        raise UserError(f"pipeline/models/{folder}/settings.py: {settings.__name__} has no {', '.join(lacking)}")
    spec = find_spec(f"pipeline.models.{folder}.model")
    text = Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""
    if not re.search(r"^def build\(", text, re.MULTILINE):
        raise UserError(f"pipeline/models/{folder}/model.py: an architecture needs a function `build` here")
