import functools

import pytest

from pipeline.core import yaml_file


@pytest.fixture(scope="module", autouse=True)
def parsed_once():
    """Parse texts of YAML once: most files of a copied project did not change."""
    patch = pytest.MonkeyPatch()
    patch.setattr(yaml_file, "parse_yaml", functools.lru_cache(500)(yaml_file.parse_yaml))
    yield
    patch.undo()
