"""Two tables of a paper at paper scale, through Slurm, while faults befall it: the small sister of `make campaign`."""

from pathlib import Path

import pytest

from pipeline.core.artifacts import Table
from qa.campaign.faults import driver_killed, preemption, training_killed
from qa.campaign.proof import fetched_projects, nodes_that_reach_servers_here, prove, undisturbed

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
LINK_TO_NODES = Path("/sys/class/net/reprise-host")  # of slurm.sh

TARGETS = (Table("attention", "table2"), Table("attention", "table4"))
MINUTES = 19  # of all trainings of the four papers: the longest of these takes forty seconds


def test_no_job_reaches_a_server_on_this_machine(slurm, tmp_path):
    if not LINK_TO_NODES.exists():
        pytest.skip("this host lets nobody make networks: the nodes share its own")
    assert nodes_that_reach_servers_here(tmp_path) == []


def test_campaign_with_faults_ends_in_the_undisturbed_tables(slurm, tmp_path):
    """Six trainings, of which one fails for ever: a preemption, a killed process, a killed driver."""
    calm, struck = fetched_projects(tmp_path, MINUTES)
    undisturbed(calm, TARGETS)
    proof = prove(struck, calm, TARGETS, (preemption, training_killed, driver_killed), looks=1, seed=1)
    print("\n".join(f"{what}: {count}" for what, count in proof.counts.items()))
    assert not proof.problems, proof.problems
    assert proof.counts["faults that came too late"] == 0
