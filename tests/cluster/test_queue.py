"""All launchers share one query of Slurm, which is rare; its answers and reasons are interpreted correctly.

reasons.txt: the words for reasons that Slurm 22.05.8 has in its library, as `strings` prints them.
"""

import errno
import fcntl
import io
import json
import os
import random
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from programs import install

from pipeline.cluster import queue as queue_module
from pipeline.cluster.queue import WAITING, Queue, QueuedJob, find_reason, next_interval, queue_interval, reasons
from pipeline.core.errors import UserError
from pipeline.core.records.jobs import QueueSnapshot


@pytest.fixture
def slurm_says(tmp_path, monkeypatch):
    """A squeue whose answer the test sets, and which counts how often it is asked."""
    folder = tmp_path / "bin"
    script = f"#!/bin/sh\necho x >> {folder}/calls\ncat {folder}/answer\n[ ! -e {folder}/broken ]\n"
    install(folder / "squeue", script, monkeypatch)

    def answers(*lines: str) -> None:
        (folder / "answer").write_text("".join(f"{line}\n" for line in lines))

    def breaks(broken: bool) -> None:
        (folder / "broken").touch() if broken else (folder / "broken").unlink()

    def calls() -> int:
        return (folder / "calls").read_text().count("x") if (folder / "calls").exists() else 0

    answers()
    return SimpleNamespace(answers=answers, breaks=breaks, calls=calls)


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    return clock


def test_many_readers_cost_one_query(tmp_path, slurm_says):
    slurm_says.answers("7|RUNNING|None|n1|some|name")
    queues = [Queue(60.0, tmp_path) for _ in range(20)]
    found = [queue.look_up("7", newer_than=0) for queue in queues]
    assert {(job.state, job.nodes, job.name) for job in found} == {("RUNNING", "n1", "some|name")}
    assert slurm_says.calls() == 1


def test_launchers_of_two_clusters_share_no_answer(tmp_path, slurm_says, monkeypatch):
    """A job would seem to be gone from its cluster."""
    found = []
    for cluster, answer in (("a", "7|RUNNING|None|n1|x"), ("b", "7|PENDING|Priority||y"), ("a", "8|RUNNING|None|n1|z")):
        monkeypatch.setenv("SLURM_CLUSTERS", cluster)
        slurm_says.answers(answer)
        found.append(Queue(60.0, tmp_path).look_up("7", newer_than=0).state)
    assert found == ["RUNNING", "PENDING", "RUNNING"] and slurm_says.calls() == 2


def test_a_job_whose_name_is_not_utf_8_hides_no_other(tmp_path, slurm_says):
    (tmp_path / "bin/answer").write_bytes(b"7|RUNNING|None|n1|caf\xe9\n8|PENDING|Priority||name\n")
    assert Queue(60.0, tmp_path).look_up("8", newer_than=0).name == "name"


HIDING = """#!/bin/sh
for option in ${SQUEUE_ALL:+--all} "$@"; do [ "$option" = --all ] && echo '%s'; done
true
"""
"""A squeue that hides what the real one hides without `--all` or its variable."""


def test_jobs_in_hidden_partitions_are_seen(tmp_path, monkeypatch):
    install(tmp_path / "bin/squeue", HIDING % "7|RUNNING|None|n1|name", monkeypatch)
    assert Queue(60.0, tmp_path).look_up("7", newer_than=0).state == "RUNNING"


def test_federated_job_is_looked_up_where_it_runs(tmp_path, slurm_says):
    """The cluster that accepted it is listed first."""
    slurm_says.answers("7|REVOKED|None||name", "7|RUNNING|None|n1|name")
    assert Queue(60.0, tmp_path).look_up("7", newer_than=0).state == "RUNNING"


def test_old_snapshot_says_nothing_of_a_job_submitted_since(tmp_path, slurm_says, clock):
    queue = Queue(60.0, tmp_path)
    assert queue.jobs(newer_than=0) == []
    submitted = clock.now = 1001.0
    slurm_says.answers("8|PENDING|Priority||name")
    assert queue.look_up("8", newer_than=submitted) is None
    clock.now += 80.0  # longer than an interval that has grown once
    assert queue.look_up("8", newer_than=submitted).state == "PENDING"


def test_silent_slurm_is_asked_again_only_after_the_interval(tmp_path, slurm_says, clock):
    queue = Queue(60.0, tmp_path)
    slurm_says.breaks(True)
    assert [queue.jobs(newer_than=0) for _ in range(5)] == [None] * 5
    assert slurm_says.calls() == 1
    slurm_says.breaks(False)
    clock.now += 59.0
    assert queue.jobs(newer_than=0) is None
    clock.now += 1.0
    assert queue.jobs(newer_than=0) == []


def test_poll_interval_grows_when_idle_and_shrinks_on_changes(tmp_path, slurm_says, clock):
    queue = Queue(10.0, tmp_path)

    def renewed_interval() -> float:
        clock.now += json.loads(queue.path.read_text())["interval"] if queue.path.exists() else 0.0
        queue.jobs(newer_than=0)
        return json.loads(queue.path.read_text())["interval"]

    slurm_says.answers("7|RUNNING|None|n1|name")
    intervals = [renewed_interval() for _ in range(7)]
    assert intervals == sorted(intervals)
    assert intervals[0] == 10.0 and intervals[-1] == 30.0
    slurm_says.answers("7|COMPLETED|None|n1|name")
    assert renewed_interval() == 10.0


@pytest.mark.parametrize("shortest", [0.1, 1.0, 60.0, 500.0])
def test_poll_interval_stays_between_shortest_and_minjobage(shortest):
    interval = shortest
    for _ in range(50):
        interval = next_interval(interval, shortest)
    assert shortest <= interval <= max(180.0, shortest)


@pytest.mark.parametrize("text", ["1m", "", "0", "-3", "nan", "inf"])
def test_interval_that_is_no_number_of_seconds_is_refused(monkeypatch, text):
    monkeypatch.setenv("REPRISE_QUEUE_INTERVAL", text)
    with pytest.raises(UserError, match=f"^REPRISE_QUEUE_INTERVAL={text}: set the seconds"):
        queue_interval()


def test_queue_snapshot_from_the_future_is_not_trusted(tmp_path, slurm_says):
    """Else a job would count as gone, and be submitted a second time, until the clock caught up."""
    queue = Queue(60.0, tmp_path)
    ahead = time.monotonic() + 3600
    QueueSnapshot(asked=ahead, taken=ahead, interval=60.0, jobs=[]).write(queue.path)
    slurm_says.answers("7|RUNNING|None|n1|name")
    assert queue.look_up("7", newer_than=time.monotonic() - 1).state == "RUNNING"


def test_queue_asks_slurm_even_if_files_cannot_be_locked(tmp_path, slurm_says, monkeypatch):
    monkeypatch.setattr("fcntl.flock", Mock(side_effect=OSError(errno.ENOSYS, "Function not implemented")))
    assert Queue(60.0, tmp_path).jobs(newer_than=0) == []


def test_queue_refuses_a_folder_made_by_another_user(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"reprise-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="belongs to another user; set TMPDIR"):
        Queue(60.0)


def test_snapshot_cut_by_a_crash_is_replaced(tmp_path, slurm_says):
    slurm_says.answers("7|RUNNING|None|n1|name")
    queue = Queue(60.0, tmp_path)
    queue.jobs(newer_than=0)
    content = queue.path.read_bytes()
    for cut in random.Random(4).sample(range(len(content) - 1), 8):
        queue.path.write_bytes(content[:cut])
        assert queue.look_up("7", newer_than=0).state == "RUNNING"
        assert queue.path.read_bytes() != content[:cut]
    assert slurm_says.calls() == 9


def test_launcher_keeps_asking_while_another_writes(tmp_path, slurm_says):
    queue = Queue(60.0, tmp_path)
    with open(queue.path, "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert queue.jobs(newer_than=0) is None
        queue.reset_interval()
        assert slurm_says.calls() == 0
    assert queue.jobs(newer_than=0) == []


@pytest.mark.parametrize("room", [0, 5])
def test_full_disk_is_named_when_the_snapshot_is_written(room, tmp_path, slurm_says, monkeypatch):
    class FullDisk(io.FileIO):
        def write(self, content):
            if self.tell() >= room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(content[:room])

    monkeypatch.setattr(queue_module, "open", lambda path, mode, buffering: FullDisk(path, mode), raising=False)
    with pytest.raises(UserError, match=r"can't write .*slurm-queue[-\w]*\.lock: No space left.*set TMPDIR"):
        Queue(60.0, tmp_path).jobs(newer_than=0)


WORDS = Path(__file__).with_name("reasons.txt").read_text().split()


def test_every_reason_of_slurm_has_an_explanation():
    assert len(WORDS) > 150
    assert [word for word in WORDS if find_reason(f"PENDING {word}") is None] == []


def test_every_explanation_belongs_to_a_reason_of_slurm():
    """Some alternatives of each pattern are enough."""
    said = [f"PENDING {word}" for word in WORDS] + [f"{state} None" for state in WAITING] + list(REFUSALS)
    said += ["PENDING launch failed requeued held", "PENDING None"]
    assert set(reasons()) == set(map(find_reason, said)) - {None}


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
    f"sbatch: error: Slurm job queue full, sleeping and retrying\n{FAILED}Unable to create job record": "waits",
    f"{FAILED}MaxJobCount limit reached": "waits",
    f"{FAILED}Rate limit exceeded, please retry later": "waits",
    f"{FAILED}Slurm backup controller in standby mode": "waits",
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


@pytest.mark.parametrize(
    ("words", "then"),
    [
        ("PENDING Priority", "waits"),
        ("PENDING Resources", "waits"),
        ("PENDING Dependency", "waits"),
        ("PENDING DependencyNeverSatisfied", "never"),
        ("PENDING ReqNodeNotAvail, UnavailableNodes:n[1-2]", "waits"),
        ("PENDING Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority", "waits"),
        ("PENDING QOSMaxSubmitJobPerUserLimit", "waits"),
        ("PENDING QOSMaxJobsPerUserLimit", "waits"),
        ("PENDING QOSMaxGRESPerUser", "waits"),
        ("PENDING AssocGrpCPURunMinutesLimit", "waits"),
        ("PENDING AssocGrpCPUMinutesLimit", "stuck"),
        ("PENDING AssocMaxGRESPerJob", "never"),
        ("PENDING AssocMaxWallDurationPerJobLimit", "never"),
        ("PENDING PartitionTimeLimit", "never"),
        ("PENDING JobHeldUser", "stuck"),
        ("PENDING launch failed requeued held", "stuck"),
        ("PENDING job requeued in held state", "stuck"),
        ("PENDING launch failure limit exceeded requeued held", "stuck"),
        ("PENDING user env retrieval failed requeued held", "stuck"),
        ("RESV_DEL_HOLD Reservation course-2 was deleted", "never"),
        ("RESV_DEL_HOLD Reservation course-2 is invalid", "never"),
        ("PENDING Reservation", "waits"),
        ("PENDING uid 7 not in group permitted to use this partition (gpu). groups allowed: hpc", "never"),
        ("REQUEUE_HOLD None", "stuck"),
        ("SUSPENDED None", "waits"),
        *REFUSALS.items(),
    ],
)
def test_reasons_are_transient_or_final_or_need_a_fix(words, then):
    assert find_reason(words).then == then


def test_job_that_can_never_start_is_to_be_cancelled():
    """The same command would adopt it again, with what it once asked for."""
    for word in WORDS:
        reason = find_reason(f"PENDING {word}")
        if reason and reason.then == "never":
            job = QueuedJob("7", "PENDING", word)
            assert reason.meaning in job.in_words and job.in_words.count("`scancel 7`") == 1


@pytest.mark.parametrize(
    "words",
    ["Priority must be >= 0", "Invalid --power specification", "your job asks for too few resources", "no dependency"],
)
def test_pending_reasons_in_sbatch_errors_are_not_retried(words):
    assert find_reason(f"sbatch: error: {words}\n{FAILED}Unspecified error") is None


def test_waiting_job_is_explained_with_its_remedy():
    held = QueuedJob("7", "PENDING", "JobHeldUser")
    assert held.in_words == "waits: a user of your account has put it on hold: `scontrol release 7` releases it"
    assert "`scontrol release 7` releases it" in QueuedJob("7", "REQUEUE_HOLD", "None").in_words
    assert QueuedJob("7", "PENDING", "Priority").in_words == "waits: other jobs come first"
    assert QueuedJob("7", "PENDING", "WhatSlurm30Says").in_words == "waits: PENDING WhatSlurm30Says"
    assert QueuedJob("7", "RUNNING", "None", "n1").in_words == "is running on n1"
