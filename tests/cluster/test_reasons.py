"""Every reason that Slurm gives is explained in words, with whether it resolves itself.

reasons.txt: the words for reasons that Slurm 22.05.8 has in its library, as `strings` prints them.
"""

from pathlib import Path

import pytest

from pipeline.cluster.queue import WAITING, QueuedJob, find_reason, reasons

WORDS = Path(__file__).with_name("reasons.txt").read_text().split()


def test_every_reason_of_slurm_has_an_explanation():
    assert len(WORDS) > 150
    assert [word for word in WORDS if find_reason(f"PENDING {word}") is None] == []


def test_every_explanation_belongs_to_a_reason_of_slurm():
    """Some alternatives of each pattern are enough."""
    said = [f"PENDING {word}" for word in WORDS] + [f"{state} None" for state in WAITING] + list(REFUSALS)
    said += ["PENDING launch failed requeued held", "PENDING None"]
    assert set(reasons()) == set(map(find_reason, said)) - {None}


@pytest.mark.parametrize(
    ("state", "reason", "then"),
    [
        ("PENDING", "Priority", "waits"),
        ("PENDING", "Resources", "waits"),
        ("PENDING", "Dependency", "waits"),
        ("PENDING", "DependencyNeverSatisfied", "never"),
        ("PENDING", "ReqNodeNotAvail, UnavailableNodes:n[1-2]", "waits"),
        ("PENDING", "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority", "waits"),
        ("PENDING", "QOSMaxSubmitJobPerUserLimit", "waits"),
        ("PENDING", "QOSMaxJobsPerUserLimit", "waits"),
        ("PENDING", "QOSMaxGRESPerUser", "waits"),
        ("PENDING", "AssocGrpCPURunMinutesLimit", "waits"),
        ("PENDING", "AssocGrpCPUMinutesLimit", "stuck"),
        ("PENDING", "AssocMaxGRESPerJob", "never"),
        ("PENDING", "AssocMaxWallDurationPerJobLimit", "never"),
        ("PENDING", "PartitionTimeLimit", "never"),
        ("PENDING", "JobHeldUser", "stuck"),
        ("PENDING", "launch failed requeued held", "stuck"),
        ("PENDING", "job requeued in held state", "stuck"),
        ("REQUEUE_HOLD", "None", "stuck"),
        ("SUSPENDED", "None", "waits"),
    ],
)
def test_pending_reasons_are_transient_or_need_a_fix(state, reason, then):
    assert find_reason(f"{state} {reason}").then == then


FAILED = "sbatch: error: Batch job submission failed: "
POLICY = f"{FAILED}Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
REFUSALS = {
    f"sbatch: error: QOSMaxSubmitJobPerUserLimit\n{POLICY}": "waits",
    f"sbatch: error: AssocMaxWallDurationPerJobLimit\n{POLICY}": "never",
    POLICY: "waits",
    f"{FAILED}Unable to contact slurm controller (connect failure)": "waits",
    f"{FAILED}Socket timed out on send/recv operation": "waits",
    f"sbatch: error: invalid partition specified: nowhere\n{FAILED}Invalid partition name specified": "never",
    f"{FAILED}Invalid account or account/partition combination specified": "never",
    f"{FAILED}Invalid qos specification": "never",
    f"{FAILED}Requested node configuration is not available": "never",
    f"{FAILED}Requested time limit is invalid (missing or exceeds some limit)": "never",
    f"{FAILED}Invalid generic resource (gres) specification": "never",
    "sbatch: unrecognized option '--nonsense'": "never",
    f"{FAILED}Requested reservation is invalid": "never",
    f"{FAILED}Access denied to requested reservation": "never",
    f"{FAILED}Requested reservation not usable now": "waits",
    f"{FAILED}Job dependency problem": "never",
    f"{FAILED}Licenses currently unavailable": "waits",
}
UNKNOWN = (
    "Priority must be >= 0",
    "Invalid --power specification",
    "your job asks for too few resources",
    "no dependency",
)


@pytest.mark.parametrize("words", REFUSALS)
def test_sbatch_refusals_are_temporary_or_final(words):
    assert find_reason(words).then == REFUSALS[words]


@pytest.mark.parametrize("words", UNKNOWN)
def test_pending_reasons_in_sbatch_errors_are_not_retried(words):
    assert find_reason(f"sbatch: error: {words}\n{FAILED}Unspecified error") is None


def test_waiting_job_is_explained_with_its_remedy():
    held = QueuedJob("7", "PENDING", "JobHeldUser")
    assert held.in_words == "waits: a user of your account has put it on hold: `scontrol release 7` releases it"
    assert QueuedJob("7", "PENDING", "Priority").in_words == "waits: other jobs come first"
    assert QueuedJob("7", "PENDING", "WhatSlurm30Says").in_words == "waits: PENDING WhatSlurm30Says"
    assert QueuedJob("7", "RUNNING", "None", "n1").in_words == "is running on n1"
