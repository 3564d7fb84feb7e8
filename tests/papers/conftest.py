import functools

import pytest

from pipeline.core import yaml_file


@pytest.fixture(scope="module")
def parsed_once():
    """Files that did not change are parsed once."""
    patch = pytest.MonkeyPatch()
    patch.setattr(yaml_file, "parse_yaml", functools.lru_cache(500)(yaml_file.parse_yaml))
    yield
    patch.undo()
