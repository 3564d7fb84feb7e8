import pytest


@pytest.fixture(autouse=True)
def use_loaded_project(loaded_once):
    """Commands of these tests share one loaded project."""
