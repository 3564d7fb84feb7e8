"""Whenever the workflow stops, its last lines give the cause, the place and the remedy."""

import json
import os
import shutil
import time

import pytest
from copied_project import ROOT, add_toy_paper, call, copy_project
from fabricated import touch
from programs import install
from real_project import real_project

from pipeline.core.artifacts import RunId
from pipeline.core.digests import write_note
from pipeline.core.records.jobs import StartLine, record_event

SPLITS = ("train", "dev", "test")
LAYOUT = real_project({"scale": "smoke"}).layout
CORPUS, OTHER = (str(LAYOUT.corpus(f"grammar-smoke-en-{language}")) for language in ("de", "fr"))


@pytest.fixture
def project(tmp_path):
    return copy_project(tmp_path)


def make(project, *arguments):
    return call(project, "snakemake", "--cores", "2", "--config", "scale=smoke", *arguments)


def lose_raw_text(project, corpus):
    """Leave the mark of the raw text and no text, so that its preparation fails."""
    (project / corpus / "prepared").mkdir(parents=True)
    (project / corpus / "raw.done").touch()


def test_make_reports_the_cause_once_and_writes_partial_reports(project):
    """It has Snakemake be quiet."""
    add_toy_paper(project)
    lose_raw_text(project, CORPUS)
    done = call(project, "reprise", "make", "--set", "scale=smoke", "results/smoke/toy/table1.csv")
    cause, log = f"{CORPUS}/raw/train.en: no such file", f"(log: {CORPUS}/logs/prepare.log)"
    assert done.returncode == 1 and done.stderr.startswith(f"error: {cause}")
    assert [(done.stdout + done.stderr).count(said) for said in (cause, log)] == [1, 1]
    assert "reports: 1 incomplete; trainings: 1 not run" in done.stdout
    assert "not run" in (project / "results/smoke/toy/table1.csv").read_text()


def test_each_of_several_failed_stages_has_its_line_and_log(project):
    for corpus in (CORPUS, OTHER):
        lose_raw_text(project, corpus)
    done = make(project, "--keep-going", "--", *(f"{corpus}/prepared/report.json" for corpus in (CORPUS, OTHER)))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    for corpus, last in zip(sorted((CORPUS, OTHER)), sorted(done.stderr.splitlines()[-2:]), strict=True):
        assert last.startswith(f"error: {corpus}/raw/") and "no such file; " in last
        assert last.endswith(f"(log: {corpus}/logs/prepare.log)")


@pytest.mark.parametrize(
    ("target", "status"), [(f"{OTHER}/raw.done", 0), (f"{CORPUS}/prepared/report.json", 1)], ids=["made", "failed"]
)
def test_a_workflow_does_not_wait_after_its_last_job(project, target, status):
    """Snakemake looks for more work after a timespan, here of an hour."""
    lose_raw_text(project, CORPUS)
    options = ("--cores", "2", "--config", "scale=smoke", "--max-jobs-per-timespan", "9/1h")
    assert call(project, "timeout", "--signal=KILL", "300", "snakemake", *options, "--", target).returncode == status


REFUSES = """#!/bin/sh
case "$0" in *sbatch)
  (echo $SLURM_CONF; cat .snakemake/drivers/*) > seen
  echo "sbatch: error: invalid partition specified: low
sbatch: error: Batch job submission failed: Invalid partition name specified" >&2; exit 1;; esac
"""


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """A project, and its Snakemake that was itself a job of Slurm, which refused another one."""
    project = copy_project(tmp_path_factory.mktemp("refused"))
    job = {"SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": "2", "SLURM_CONF": "/etc/a.conf"}
    with pytest.MonkeyPatch.context() as patch:
        for name in ("sbatch", "srun", "squeue", "sacct", "scancel", "sinfo", "sacctmgr", "scontrol"):
            install(project / "bin" / name, REFUSES, patch)
        os.utime(touch(project / CORPUS / "logs/generate.log", "error: of an earlier try\n"), (1e9, 1e9))
        command = ("snakemake", "--profile", "slurm", "--config", "scale=smoke", "--", f"{CORPUS}/raw.done")
        return project, call(project, *command, **job)


def test_refused_slurm_job_ends_with_the_message_of_slurm(refused):
    project, done = refused
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert "invalid partition specified: low sbatch: error: Batch job submission failed" in last
    assert last.endswith(f"(log: {CORPUS}/logs/generate.log)")
    assert "invalid partition specified: low" in call(project, "reprise", "status", "--set", "scale=smoke").stdout


def test_driver_job_keeps_its_identity_and_cluster(refused):
    """Snakemake's executor takes them away; without them its next start, on another node, was refused."""
    cluster, record = (refused[0] / "seen").read_text().split("\n", 1)
    driver = json.loads(record)
    assert (cluster, driver["job"], driver["restart"]) == ("/etc/a.conf", "7", 2)


@pytest.mark.parametrize("lately", [True, False])
def test_taken_over_training_says_so_despite_the_log_of_another(project, lately):
    """They have the work folder in common, and with it the log. What was taken over before counts no more."""
    run = LAYOUT.run(RunId("weighted", "C", "grammar-smoke-en-de", 1))
    launch = "echo the other one says this #"
    rules = project / "workflow/rules/common.smk"
    rules.write_text(rules.read_text().replace("python -m pipeline launch ", f"false ; {launch} ", 1))
    for path in (f"{CORPUS}/encoded/corpus.json", run / "run.yaml"):
        touch(project / path)
    facts = {"time": time.time() + 600 if lately else 0.0, "job": "7", "restart": 0, "node": "n1", "pid": 7}
    record_event(project / run, StartLine(event="stop", outcome="taken over", **facts))
    done = make(project, "--", str(run / "done.json"))
    last = done.stderr.splitlines()[-1]
    taken = last.startswith(f"error: {run}: another job or process") and "taken this run over" in last
    assert done.returncode == 1 and taken is lately and last.startswith("error: failed") is not lately


def test_damaged_file_ends_with_the_repair_command_of_its_scale(project):
    for name in ("raw.done", *(f"raw/{split}.{side}" for split in SPLITS for side in ("en", "de"))):
        touch(project / CORPUS / name, "a line\n")
    write_note(damaged := project / CORPUS / "raw/train.en")
    damaged.write_text("another\n")
    done = make(project, "--", f"{CORPUS}/prepared/report.json")
    assert "run `reprise verify --repair --set scale=smoke`, or remove " in done.stderr.splitlines()[-1]


def test_unwritable_work_folder_is_one_error_before_any_job(project):
    done = make(project, "work=/proc/none", "--", f"/proc/none/{CORPUS.removeprefix('work/')}/raw.done")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "/proc/none: No such file or directory; make it writable, or choose another `work:`" in done.stderr
    assert "grammar: grammar-smoke-en-de" not in done.stderr


def test_dry_run_of_make_is_a_summary_only(tmp_path):
    done = call(ROOT, "reprise", "make", "weighted", "-n", "--set", "scale=smoke", "--set", f"work={tmp_path}")
    assert done.returncode == 0 and not done.stderr and not list(tmp_path.iterdir()), done
    first, *lines = done.stdout.splitlines()
    assert first.startswith("In short, at scale smoke: ") and 5 < len(lines) < 10


def test_make_refuses_a_target_it_does_not_have(project):
    (project / "Makefile").unlink(missing_ok=True)
    (project / "Makefile").symlink_to(ROOT / "Makefile")
    done = call(project, "make", "nosuch")
    assert done.returncode == 2 and done.stderr.startswith("error: no target 'nosuch'")


def test_another_folder_is_told_where_to_go_first(project):
    other = project / "other"
    other.mkdir()
    done = call(other, "snakemake", "-n", "--snakefile", str(project / "workflow/Snakefile"))
    said, root = done.stdout + done.stderr, (project / "workflow").resolve().parent
    assert done.returncode == 1 and f"first `cd {root}`" in said and "add --directory" in said


def test_missing_sbatch_is_said_before_the_first_job(project, tmp_path):
    """The work folder is at fault too, which is found later."""
    (tmp_path / "tools").mkdir()
    for name in ("bash", "env", "sh", "which"):
        (tmp_path / "tools" / name).symlink_to(shutil.which(name))
    target = f"/proc/none/{CORPUS.removeprefix('work/')}/raw.done"
    settings = ("--config", "scale=smoke", "work=/proc/none")
    done = call(project, "snakemake", "--profile", "slurm", *settings, "--", target, PATH=str(tmp_path / "tools"))
    assert done.returncode == 1 and "no sbatch on this machine; omit --profile slurm" in done.stderr
