import pytest
from real_project import real_project


@pytest.fixture(autouse=True)
def use_loaded_project(loaded_once):
    """Commands of these tests share one loaded project."""


@pytest.fixture
def project(tmp_path):
    """Return the project at scale demo with an empty work folder."""
    return real_project({"work": str(tmp_path), "scale": "demo"})
