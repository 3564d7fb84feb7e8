"""Seeds of the random inputs."""

import pytest


@pytest.fixture(params=[1, 2, 3])
def seed(request) -> int:
    return request.param
