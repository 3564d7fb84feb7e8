"""Seeds of the random inputs, and a web server."""

import pytest
from bad_server import serving

from pipeline.data.fetch import transfer


@pytest.fixture(params=[1, 2])
def seed(request) -> int:
    return request.param


@pytest.fixture
def server(monkeypatch):
    """Run a server that misbehaves; attempts to fetch from it come without pauses."""
    monkeypatch.setattr(transfer, "FIRST_PAUSE_S", 0.0)
    with serving() as running:
        yield running
