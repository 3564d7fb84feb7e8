"""Only the stages that fetch need a network, because nodes of a cluster often have none."""

import subprocess
import sys

import pytest
from copied_project import add_toy_paper, call, copy_project, require

ALONE = ("unshare", "--map-root-user", "--net")
"""Prefix of a command that runs without a network."""
CONNECT = "import socket; s = socket.create_server(('', 0)); socket.create_connection(s.getsockname())"


@pytest.fixture
def no_network():
    try:
        done = subprocess.run([*ALONE, sys.executable, "-c", CONNECT], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no `unshare` on this machine")
    if "unshare" in done.stderr:
        pytest.skip(f"no network namespace is allowed here: {done.stderr.strip()}")
    assert "Network is unreachable" in done.stderr, "not even this machine is to be reached from there"


@pytest.mark.slow
def test_toy_paper_is_built_without_a_network(no_network, tmp_path):
    add_toy_paper(copy_project(tmp_path))
    require(call(tmp_path, *ALONE, "snakemake", "--cores", "2", "--config", "scale=smoke", "--", "toy"))
    assert (tmp_path / "results/smoke/toy/table1.csv").exists()
