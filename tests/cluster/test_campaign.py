"""A table at paper scale, made through Slurm under faults, equals the undisturbed one. `make campaign` does more."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.core.artifacts import Table
from qa.campaign.faults import driver_killed, preemption, training_killed
from qa.campaign.proof import fetched_projects, nodes_that_reach_servers_here, prove, undisturbed

pytestmark = pytest.mark.cluster
LINK_TO_NODES = Path("/sys/class/net/reprise-host")  # of slurm.sh

TARGETS = (Table("multichannel", "table2"),)
SECONDS = 60.0
"""Seconds that a training takes until the last fault, in the order that the seed draws; then they hurry."""


def test_no_job_reaches_a_server_on_this_machine(slurm, tmp_path):
    if not LINK_TO_NODES.exists():
        pytest.skip("this host allows no new networks: the nodes share its own")
    assert nodes_that_reach_servers_here(tmp_path) == []


@pytest.mark.qa
def test_campaign_with_faults_ends_in_the_undisturbed_tables(slurm, tmp_path):
    """Three trainings, one of which always fails: a preemption, a killed training, a killed driver."""
    calm, struck = fetched_projects(tmp_path, lambda _: SECONDS, TARGETS)
    faults = (preemption, training_killed, driver_killed)
    with ThreadPoolExecutor(1) as pool:
        finished = pool.submit(undisturbed, calm, TARGETS)
        proof = prove(struck, finished.result, TARGETS, faults, looks=1, seed=40)
    print("\n".join(f"{what}: {count}" for what, count in proof.counts.items()))
    assert not proof.problems, proof.problems
    assert proof.counts["faults that came too late"] == 0
