"""States and errors recorded from squeue and sbatch: jobs are over, replaced, adopted or given up."""

import os
import re
import shutil
import time
import uuid
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest
import submitit
from programs import install

from pipeline.cluster import launch, slurm as slurm_module, wait
from pipeline.cluster.job_process import JobOrder
from pipeline.cluster.queue import Queue, QueuedJob, query_slurm
from pipeline.cluster.resources import Resources
from pipeline.cluster.slurm import SlurmJobs, delays, job_name
from pipeline.cluster.state import read_submission, record_failure, record_unfit_node, unfit_nodes
from pipeline.cluster.wait import Waiter
from pipeline.core.errors import UserError
from pipeline.core.json_csv import write_json
from pipeline.core.records.jobs import Submission, record_event

KEY = "the run's key"
LOST = "NODE_FAIL|NodeDown|n2"
UNHEARD_OF = "sbatch: error: Batch job submission failed: the moon is full"
LIMITED = """sbatch: error: QOSMaxSubmitJobPerUserLimit
sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or \
time limits)"""
TIMED_OUT = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"


class Recorded:
    """Slurm, as far as a launcher sees it: what squeue prints, what sbatch answers, and `then` what a job does."""

    def __init__(self, run, monkeypatch):
        self.run, self.listed, self.ends, self.complaints, self.notes = run, {}, [], [], []
        self.then = lambda job: None
        monkeypatch.setattr("pipeline.cluster.queue.query_slurm", self.squeue)
        monkeypatch.setattr(SlurmJobs, "_sbatch", lambda jobs: self.sbatch(jobs.name))

    def squeue(self):
        return [f"{job}|{words}".split("|", 4) for job, words in self.listed.items()]

    def sbatch(self, name: str) -> str:
        """The next job, which ends as the next of `ends` says; with the last of them the run is done."""
        self.notes.append(read_submission(self.run))
        if self.complaints:
            raise RuntimeError(self.complaints.pop(0))
        job = str(41 + len(self.notes))
        words = self.ends.pop(0)
        if words == "done":
            write_json(self.run / "done.json", {"key": KEY})
        elif words != "gone":
            self.listed[job] = f"{words}|{name}"
        (self.run / "slurm").mkdir(parents=True, exist_ok=True)
        (self.run / "slurm" / f"{job}_0_log.out").write_text(f"{job} begins\n")
        self.then(job)
        return job


@pytest.fixture
def run(tmp_path):
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


@pytest.fixture
def slurm(run, monkeypatch):
    monkeypatch.setattr(wait, "SETTLE_S", 0.0)
    monkeypatch.setattr(wait, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(slurm_module, "FIRST_DELAY_S", 0.0)
    return Recorded(run, monkeypatch)


def jobs_of(run) -> SlurmJobs:
    return SlurmJobs(run, JobOrder("toy_job:count_steps", str(run), KEY, 0, "code"), None, Queue(0.0, run.parent))


@pytest.mark.parametrize("name", ["50%user", "a\\b"])
def test_a_path_that_slurm_reads_as_a_pattern_is_refused(tmp_path, name):
    with pytest.raises(UserError, match="in the path of a log as a pattern; choose another `work:`"):
        jobs_of(tmp_path / name)


def wait_for(run) -> None:
    Waiter(run, KEY, jobs_of(run)).wait()


OVER = ["BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"]
OVER += ["REVOKED", "TIMEOUT", "GONE"]
ALIVE = ["PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "REQUEUED", "REQUEUE_HOLD", "RESIZING", "SUSPENDED"]
ALIVE += ["STOPPED", "SIGNALING", "STAGE_OUT", "SPECIAL_EXIT"]


def test_every_state_of_slurm_is_over_or_not():
    """The words of squeue's manual, of Slurm 23."""
    assert [QueuedJob("7", state).is_over for state in OVER + ALIVE] == [True] * len(OVER) + [False] * len(ALIVE)


@pytest.mark.parametrize(
    "end", [LOST, "TIMEOUT|TimeLimit|n1", "PREEMPTED|None|n1", "COMPLETED|None|n1", "FAILED|NonZeroExitCode|n1", "gone"]
)
def test_a_job_that_ended_without_a_word_is_followed_by_another(run, slurm, end, capsys):
    slurm.ends = [end, "done"]
    wait_for(run)
    assert capsys.readouterr().err == "42 begins\n43 begins\n", "the logs are shown"
    assert len(slurm.notes) == 2 and not unfit_nodes(run)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("OUT_OF_MEMORY|OutOfMemory|n1", "job 42 ran out of memory; raise mem_mb in the scale file"),
        ("CANCELLED|None|n1", "job 42 was cancelled; the same command resumes from step 30"),
    ],
)
def test_out_of_memory_or_cancelled_job_is_not_resubmitted(run, slurm, end, message):
    (run / "checkpoints").mkdir()
    (run / "checkpoints/step-30.resume.safetensors").touch()
    slurm.ends = [end, "done"]
    with pytest.raises(UserError, match=message):
        wait_for(run)
    assert len(slurm.notes) == 1


@pytest.mark.parametrize("words", ["1 oom-kill event(s) in StepId=42.0.", "2 oom_kill events in StepId=42.0."])
def test_out_of_memory_step_of_a_failed_job_is_recognised(run, slurm, words):
    """Slurm 20.11 and 25.05 write this into the log of the step."""
    log = run / "slurm/42_0_log.out"
    slurm.then = lambda job: log.write_text(f"42 begins\nslurmstepd: error: Detected {words} Some of …\n")
    slurm.ends = ["FAILED|NonZeroExitCode|n1", "done"]
    with pytest.raises(UserError, match="job 42 ran out of memory; raise mem_mb"):
        wait_for(run)
    assert len(slurm.notes) == 1


def test_recorded_failure_shows_trace_and_log_and_ends_the_wait(run, slurm, monkeypatch):
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    slurm.then = lambda job: record_failure(run, KEY, "ValueError: odd", "the trace\n")
    slurm.ends = ["RUNNING|None|n1", "done"]
    with pytest.raises(UserError, match=r"job 42 failed on n1: ValueError: odd\nthe trace\nlast .*:\n42 begins$"):
        wait_for(run)
    assert len(slurm.notes) == 1


def test_resubmission_ends_after_three_jobs_without_progress(run, slurm):
    """The second one got further, so that four are started in all."""
    slurm.ends = [LOST, LOST, LOST, LOST, "done"]
    (run / "checkpoints").mkdir()
    slurm.then = lambda job: (run / "checkpoints/step-9.safetensors").touch() if job == "43" else None
    with pytest.raises(UserError, match=r"3 jobs in a row died at step 9, the last one 45 \(node_fail NodeDown\)"):
        wait_for(run)
    assert len(slurm.notes) == 4


def test_node_that_left_no_job_log_is_excluded(run, slurm):
    slurm.ends = ["FAILED|NonZeroExitCode|n3", "done"]
    slurm.then = lambda job: (run / "slurm" / f"{job}_0_log.out").unlink()
    wait_for(run)
    assert [(note.node, note.job) for note in unfit_nodes(run)] == [("n3", "42")]


def test_a_note_says_that_a_job_will_be_submitted_before_it_is(run, slurm):
    """Or a launcher that is killed right after sbatch would leave a job that no record names."""
    slurm.ends = ["done"]
    wait_for(run)
    (before,) = slurm.notes
    assert (before.job, before.key, before.name) == (None, KEY, job_name(run, KEY))
    assert read_submission(run).job == "42"


@pytest.mark.parametrize(
    ("note", "listed", "adopted"),
    [
        ({}, "RUNNING|None|n1|other", "7"),
        ({}, "PENDING|Priority||other", "7"),
        ({}, f"{LOST}|other", None),
        ({"key": "of an older specification"}, "RUNNING|None|n1|other", None),
        ({"launcher": "local"}, "RUNNING|None|n1|other", None),
        ({"job": None}, "RUNNING|None|n1|other", None),
        ({"job": None}, "RUNNING|None|n1|ours", "7"),
        (None, "PENDING|Priority||ours", "7"),
        (None, "COMPLETED|None|n1|ours", None),
    ],
)
def test_live_job_of_a_dead_launcher_is_adopted_by_id_or_name(run, slurm, note, listed, adopted):
    if note is not None:  # of an earlier launcher
        facts = {"key": KEY, "launcher": "slurm", "job": "7", "name": "other", "time": 0.0, "code": "code"}
        record_event(run, Submission.model_validate(facts | note))
    slurm.listed["7"] = listed.replace("|ours", f"|{job_name(run, KEY)}")
    assert jobs_of(run).adopt() == adopted
    if adopted:
        assert read_submission(run).job == "7"


def test_job_names_are_valid_and_differ_by_folder_and_key(tmp_path):
    deep = "a/very/long/path/of/folders"
    run = "runs/coldfusion/CF 4/grammar-en-de/seed1"
    places = [tmp_path / place / run for place in ("one", "other", deep, f"{deep}/again")]
    names = [job_name(place, key) for place in places for key in (KEY, "another")]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"coldfusion-CF_4-grammar-en-de-seed1-[0-9a-f]{10}", name) for name in names)
    places[0].mkdir(parents=True)
    (tmp_path / "link").symlink_to(places[0])
    assert job_name(tmp_path / "link", KEY) == job_name(places[0], KEY)


def test_permanent_sbatch_refusal_is_not_retried(run, slurm):
    slurm.complaints = ["sbatch: error: Batch job submission failed: Invalid partition name specified\n\n"] * 9
    with pytest.raises(UserError, match=r"refuses the job: .*Invalid partition name specified; .* slurm/site.yaml"):
        wait_for(run)
    assert len(slurm.notes) == 1


@pytest.mark.parametrize("words", [TIMED_OUT, LIMITED])
def test_temporary_sbatch_errors_are_retried_and_logged_once(run, slurm, words, caplog):
    slurm.complaints, slurm.ends = [words] * 40, ["done"]
    wait_for(run)
    assert len(slurm.notes) == 41
    said = [record.getMessage() for record in caplog.records if "sbatch" in record.getMessage()]
    assert len(said) == 1 and said[0].endswith(f"({words.split(chr(10))[-1]})")


def test_tries_come_less_and_less_often_but_every_five_minutes():
    first, later = list(islice(delays(60.0), 7)), list(islice(delays(60.0), 50, 60))
    assert first == [5 * 2**attempt for attempt in range(7)]
    assert set(later) == {320.0}


def test_a_complaint_that_nobody_knows_is_made_seven_times(run, slurm):
    slurm.complaints, slurm.ends = [UNHEARD_OF] * 6, ["done"]
    wait_for(run)
    assert len(slurm.notes) == 7
    (run / "done.json").unlink()
    slurm.complaints = [UNHEARD_OF] * 7
    with pytest.raises(UserError, match=r"sbatch refuses the job: .*the moon is full; check slurm/site.yaml"):
        wait_for(run)


def test_pending_reasons_are_logged_once_until_the_job_runs(run, slurm, caplog):
    caplog.set_level("INFO")
    waiter = Waiter(run, KEY, jobs_of(run))
    seen = ["Priority", "Resources", "Priority", "RUNNING", "Priority", "Resources"]
    for word in seen:
        state = ("RUNNING", "None", "n1") if word == "RUNNING" else ("PENDING", word, "")
        waiter._report(QueuedJob("7", *state))
    first, free = "job 7 waits: other jobs come first", "job 7 waits: nodes, GPUs or memory have to become free"
    assert caplog.messages == [first, free, "job 7 is running on n1", first, free]


def test_a_time_out_that_hides_a_success_leads_to_no_second_job(run, slurm, monkeypatch):
    def hidden(jobs):
        slurm.notes.append(read_submission(run))
        slurm.listed["77"] = f"RUNNING|None|n1|{jobs.name}"
        raise RuntimeError(TIMED_OUT)

    monkeypatch.setattr(SlurmJobs, "_sbatch", hidden)
    assert jobs_of(run).submit() == "77" and len(slurm.notes) == 1


STARTS_AT_ONCE = """\
#!/bin/sh
log=$(sed -n 's/^#SBATCH --output=//p' "$1" | sed 's/%j/42/')
echo begun > "$log" && echo "Submitted batch job 42"
"""


def test_job_started_before_sbatch_returns_can_open_its_log(run, tmp_path, monkeypatch):
    """Slurm makes no folder for it: a job without its log fails at once, and its node would count as unfit."""
    for name in ("sbatch", "srun"):
        install(tmp_path / "bin" / name, STARTS_AT_ONCE, monkeypatch)
    (run / "slurm").mkdir()
    left = [run / "slurm/.submission_file_0.sh", run / f"slurm/{uuid.uuid4().hex}.pkl"]  # of one that failed
    kept = [run / "slurm/41_0_log.out", run / "slurm/41_submission.sh"]
    young = run / f"slurm/{uuid.uuid4().hex}.pkl"  # of another launcher that is submitting
    for path in (*left, *kept, young):
        path.touch()
    for path in left:
        os.utime(path, (time.time() - 2 * slurm_module.LEFTOVER_AFTER_S,) * 2)
    jobs = jobs_of(run)
    jobs.resources = Resources(mem_mb=100, runtime_min=5)
    assert jobs.submit() == "42"
    assert jobs.log_of("42").read_text() == "begun\n"
    assert [path.exists() for path in (*left, *kept, young)] == [False, False, True, True, True]


def test_tasks_get_their_variables_whatever_a_site_exports(run, tmp_path, monkeypatch):
    """For --export=NONE Slurm sets a variable, and srun then leaves out all others."""
    seen = tmp_path / "seen"
    install(tmp_path / "bin/srun", f'#!/bin/sh\necho "$SLURM_EXPORT_ENV $OMP_NUM_THREADS" >{seen}\n', monkeypatch)
    submits = '#!/bin/sh\nSLURM_EXPORT_ENV=NONE sh "$1" && echo "Submitted batch job 42"\n'
    install(tmp_path / "bin/sbatch", submits, monkeypatch)
    jobs = jobs_of(run)
    jobs.resources = Resources(cpus=3, sbatch="--export=NONE")
    assert jobs.submit() == "42" and seen.read_text() == "ALL 3\n"


@pytest.mark.parametrize("missing", ["sbatch", "squeue", "srun"])
def test_a_machine_without_a_program_of_slurm_is_refused(tmp_path, monkeypatch, missing):
    """Without squeue a launcher would ask for ever."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for name in {"sbatch", "squeue", "srun"} - {missing}:
        install(tmp_path / "bin" / name, "#!/bin/sh\n")
    with pytest.raises(UserError, match=f"no {missing} on this machine; omit --profile slurm"):
        slurm_module.require_slurm()


def test_a_decoding_says_which_job_it_waits_for_and_why(run, slurm, caplog):
    """A job that trained may wait in the queue again, held, before it has decoded."""
    caplog.set_level("INFO")
    record_event(run, Submission(key=KEY, launcher="slurm", job="42", name="toy", code="toy"))
    states = iter(["PENDING|JobHeldUser|", "RUNNING|None|n1", "PENDING|JobHeldUser|", "COMPLETED|None|n1"])

    def is_done() -> bool:
        slurm.listed["42"] = f"{next(states)}|toy"
        return False

    launch.wait_for_training(run, Queue(1e-9, run.parent), is_done)
    said = [message.partition(" and may decode it: it ")[2] for message in caplog.messages]
    assert len(said) == 2 and "put it on hold: `scontrol release 42`" in said[0] and said[1] == "is running on n1"


def test_a_job_goes_to_the_cluster_that_squeue_is_asked_about(run, tmp_path, monkeypatch):
    """The variables of a surrounding job do not reach it."""
    for name in ("sbatch", "squeue"):
        install(
            tmp_path / "bin" / name,
            f'#!/bin/sh\nenv > {tmp_path}/{name}.env; echo "Submitted batch job 42"\n',
            monkeypatch,
        )
    named = {"SLURM_CLUSTERS": "inter", "SLURM_CONF": "/etc/a.conf"}
    for variable, value in {**named, "SLURM_JOB_ID": "7"}.items():
        monkeypatch.setenv(variable, value)
    jobs = jobs_of(run)
    jobs.resources = Resources(mem_mb=100, runtime_min=5)
    assert jobs.submit() == "42" and query_slurm() == []
    for name in ("sbatch", "squeue"):
        lines = (tmp_path / f"{name}.env").read_text().split("\n")
        assert {line for line in lines if line.startswith("SLURM_")} == {"=".join(pair) for pair in named.items()}


@pytest.mark.parametrize(("options", "account"), [("--qos=long", "me"), ("--qos=long --account=us", None)])
def test_account_of_the_environment_counts_without_another(run, monkeypatch, options, account):
    """Sites have users export it; sbatch prefers it to an option in a script."""
    seen = []
    monkeypatch.setenv("SBATCH_ACCOUNT", "me")
    monkeypatch.setenv("SBATCH_QOS", "of a surrounding job")

    def submit(self, *work) -> SimpleNamespace:
        seen.append({**os.environ})
        return SimpleNamespace(job_id="42")

    monkeypatch.setattr(submitit.SlurmExecutor, "submit", submit)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    jobs = jobs_of(run)
    jobs.resources = Resources(mem_mb=100, runtime_min=5, sbatch=options)
    assert jobs.submit() == "42"
    assert [(each.get("SBATCH_ACCOUNT"), each.get("SBATCH_QOS")) for each in seen] == [(account, None)]


def test_a_log_that_nfs_hides_blames_no_node(run, slurm, monkeypatch, capsys):
    """A look-up before the job began is remembered for a minute, unless the folder is listed."""
    exists = Path.exists
    monkeypatch.setattr(Path, "exists", lambda path: not path.name.endswith("_log.out") and exists(path))
    slurm.ends = ["FAILED|NonZeroExitCode|n1", "done"]
    wait_for(run)
    assert not unfit_nodes(run) and capsys.readouterr().err == "42 begins\n43 begins\n"


def test_waiting_ends_if_slurm_keeps_giving_an_unfit_node(run, slurm):
    slurm.then = lambda job: record_unfit_node(run, "n1", "no GPU is visible", job)
    slurm.ends = ["FAILED|NonZeroExitCode|n1"] * 40
    with pytest.raises(UserError, match="no fit node found"):
        wait_for(run)
    assert len(slurm.notes) == wait.UNFIT_NODES
