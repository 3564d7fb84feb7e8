"""Seeds of the random inputs."""

import pytest


@pytest.fixture(params=[1, 2])
def seed(request) -> int:
    return request.param
