"""`reprise make` prints one line per event in a log and a screen on a terminal; interrupts reach all jobs."""

import errno
import io
import os
import re
import shlex
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from copied_project import ROOT
from programs import install
from real_project import real_project

from pipeline.core.artifacts import Claims, Figure, Table
from pipeline.core.errors import UserError
from pipeline.workflow.campaign import Watch
from pipeline.workflow.graph import Graph
from pipeline.workflow.targets import reports_asked_for
from reprise.cli import REPRISE
from reprise.cli.make import Pace, Workflow, causes, events, folder_of, make, print_dry_run, print_events, show_screen

MODULE = sys.modules[Workflow.__module__]
SAID = """\
Job stats:
Select jobs to execute...
[Sun Nov 22 19:08:40 2026]
19:08:38 attention/C2 seed 1  step 1200  dev perplexity 1.38
16 of 47 steps (34%) done
Finished jobid: 5 (Rule: train)
Warning: the following output files of rule decode were not present when the DAG was created:
{'work/demo/runs/attention/C2/grammar-en-de/seed1-b4d246dc/final/outputs.json'}

19:08:40 attention/C2 seed 1: done, dev perplexity 1.37
"""
EVENTS = ["Job stats:", *(line for line in SAID.split("\n") if line.startswith("19:08"))]


@pytest.fixture
def project(tmp_path):
    return real_project({"work": str(tmp_path / "work"), "scale": "smoke"})


def workflow(project, commands: str) -> Workflow:
    """Return a workflow that runs shell commands instead of Snakemake."""
    made = Workflow([], project)
    made.command = ["sh", "-c", commands]
    return made


def printed(project, capsys, commands: str) -> tuple[Workflow, str]:
    """Run shell commands as a workflow and return it with the events that it prints."""
    with workflow(project, commands) as made:
        print_events(made)
    return made, capsys.readouterr().out


def test_a_log_has_events_and_the_file_has_all(project, capsys):
    made, out = printed(project, capsys, f"printf %s {shlex.quote(SAID)}")
    assert out.split("\n")[:-1] == EVENTS and made.log.read_text() == SAID


@pytest.mark.parametrize("call", ["mkdir", "open"])
def test_log_reports_every_errno_before_the_workflow_starts(call, project, monkeypatch):
    for number in sorted(errno.errorcode):
        refuse = Mock(side_effect=OSError(number, os.strerror(number)))
        with monkeypatch.context() as patch:
            patch.setattr(*((Path, "mkdir") if call == "mkdir" else (MODULE, "open")), refuse, raising=False)
            with pytest.raises(UserError, match=r"^can't write .*make\.log: .+$") as refusal:
                workflow(project, "touch begun").__enter__()
        assert os.strerror(number) in str(refusal.value)
    assert not (project.root / "begun").exists()


@pytest.mark.parametrize("number", {type(OSError(number, "")): number for number in errno.errorcode}.values())
def test_error_of_closing_the_log_leaves_the_workflow_alone(number, project, monkeypatch):
    class Log(io.FileIO):
        def close(self):
            is_open = not self.closed
            super().close()
            if is_open:
                raise OSError(number, os.strerror(number))

    monkeypatch.setattr(MODULE, "open", Log, raising=False)
    with workflow(project, "echo done") as made:
        pass
    assert made.log.read_text() == "done\n"


FAILED = """\
RuleException:
CalledProcessError in file "rules/evaluation.smk", line 28:
Command 'set -euo pipefail;
        python -m pipeline score --out out.json >logs/score.log 2>&1' returned non-zero exit status 1.
19:08:40 attention/C2 seed 1: done, dev perplexity 1.37
RuleException:
NameError in file "rules/evaluation.smk", line 30:
name 'x' is not defined
"""


def test_log_of_make_contains_the_log_of_a_failure():
    said = list(events(FAILED.splitlines(), lambda: False))
    assert said == ["failed: more in logs/score.log", *FAILED.splitlines()[4:]]
    assert list(events(FAILED.splitlines()[:5], lambda: True)) == FAILED.splitlines()[4:5]


@pytest.mark.parametrize("command", [FAILED.replace(".log", ".txt").splitlines()[:4], FAILED.splitlines()[:3]])
def test_incomplete_command_lines_are_printed_unchanged(command):
    assert list(events(command, lambda: False)) == command


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (["error: a: no memory", "error: b", "error: a: no memory (log: a.log)"], ["b", "a: no memory (log: a.log)"]),
        (["x", 'WorkflowError in file "a.smk", line 3:', "it is made", '  File "a.smk"'], ["it is made"]),
        (["19:08 one", "two"], ["19:08 one", "two"]),
    ],
)
def test_make_prints_each_cause_once(said, told):
    assert causes(said) == told


def test_fault_of_the_workflow_is_left_to_the_last_line():
    said = ["19:08 one", 'WorkflowError in file "a.smk", line 3:', "it is made", '  File "a.smk", line 3', "19:09 two"]
    assert list(events(said, lambda: False)) == [said[0], said[-1]] and causes(said) == said[2:3]


def test_log_of_another_process_is_kept_and_not_reported(project, capsys):
    with pytest.raises(UserError):
        printed(project, capsys, "echo 19:08 théirs; echo 'error: theirs'; exit 1")
    capsys.readouterr()
    with pytest.raises(UserError, match=r"^ours\nthe whole output .*make.log$") as raised:
        printed(project, capsys, "echo 19:09 ours; echo 'error: ours'; exit 1")
    assert capsys.readouterr().out == "19:09 ours\n" and "theirs" not in str(raised.value)
    log = project.layout.scale_folder / "logs/make.log"
    assert log.read_text() == "19:08 théirs\nerror: theirs\n19:09 ours\nerror: ours\n"


def test_two_workflows_at_once_have_logs_of_their_own(project, capsys, tmp_path):
    wait = f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done"
    with workflow(project, f"echo first; {wait}; echo end") as first:
        second, _ = printed(project, capsys, "echo second")
        (tmp_path / "go").touch()
    assert first.log.read_text() == "first\nend\n" and second.log.read_text() == "second\n"
    assert (first.log.name, second.log.name) == ("make.log", "make-2.log")
    third, _ = printed(project, capsys, "echo third")
    assert third.log == first.log and third.log.read_text() == "first\nend\nthird\n"


def test_an_interrupt_is_handed_on_and_waited_for(project, tmp_path, capsys):
    """The signal reaches the whole process group, as from a terminal."""
    (tmp_path / "job").write_text(
        "trap 'echo saved; exit 1' TERM; echo ready; for i in $(seq 200); do sleep 0.05; done"
    )

    def interrupt(log):
        while "ready" not in log.read_text():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)  # a shell may have set SIGINT to be ignored

    with pytest.raises(SystemExit) as ended, workflow(project, f"trap : TERM; sh {tmp_path}/job; exit 1") as made:
        threading.Thread(target=interrupt, args=[made.log]).start()
        print_events(made)
    assert ended.value.code == 143 and "saved" in made.log.read_text()
    assert "run the same command to resume" in capsys.readouterr().err


def test_a_signal_that_nohup_ignores_ends_nothing(project):
    """The workflow inherits this, so it goes on after the terminal is closed, and is not called stopped."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with workflow(project, "sleep 0.1") as made:
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert made.process.returncode == 0 and made.received is None


@pytest.mark.parametrize("received", [None, signal.SIGINT])
def test_a_terminal_has_a_screen_that_names_the_process(project, monkeypatch, capsys, received):
    """It is named before it has registered itself, and after an interrupt, when it waits for its jobs."""
    watch = Watch(project, reports_asked_for(Graph(project), "results/smoke/weighted/table2.csv"))
    monkeypatch.setenv("FORCE_COLOR", "1")
    with suppress(SystemExit), workflow(project, "sleep 2") as made:
        made.received = received
        show_screen(made, watch, "toy")
    said = " ".join(re.sub(r"\x1b\[[?0-9;]*\w", "", capsys.readouterr().out).split())
    process = f"toy run by snakemake, process {made.process.pid} of this machine"
    assert said.startswith(process) and "0 done 0 running" in said
    assert (f"{process} (stopping)" in said) == bool(received)
    assert "to continue:" not in said


def test_reasons_of_snakemake_are_no_part_of_a_dry_run(tmp_path, monkeypatch, project, capsys):
    """A warning before them and the summary after them are printed."""
    reasons = "Reasons:\n    params have changed since last execution:\n        table\nSome jobs were triggered\n"
    summary = "In short: 2 jobs\n  train  1\n"
    text = f"a warning\n{reasons}This was a dry-run (flag -n).\n\n{summary}"
    python = install(tmp_path / "python", f"#!/bin/sh\nprintf %s {shlex.quote(text)}\n")
    monkeypatch.setattr(sys, "executable", str(python))
    print_dry_run([], project)
    assert capsys.readouterr().out == f"a warning\n{summary}"


def test_reports_lie_in_the_folder_of_their_paper_or_scale():
    tables, project = [Table("weighted", "table2"), Table("attention", "table3")], real_project({"scale": "smoke"})
    assert [str(folder_of(some, project)) for some in (tables[:1], tables)] == [
        "results/smoke/weighted",
        "results/smoke",
    ]


def test_a_target_is_the_reports_that_the_workflow_makes_of_it(project):
    graph, paper = Graph(project), project.config.paper
    assert reports_asked_for(graph, "results/table2.csv") == [Table(paper, "table2")]
    assert reports_asked_for(graph, "results/smoke/attention/figure3.png") == [Figure("attention", "figure3")]
    assert reports_asked_for(graph, "results/smoke/coldfusion/claims.md") == [Claims("coldfusion")]
    assert reports_asked_for(graph, "weighted") == graph.reports(["weighted"])
    assert set(reports_asked_for(graph, "all")) == set(graph.reports(project.reproduced))


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("weigthed", "weighted"),
        ("results/tabel2.csv", "table2"),
        ("weighted.html", "weighted.html: neither a paper, nor `all`, nor a result; if a rule makes it"),
        ("work/x.json", "if a rule makes it, `snakemake --config .*scale=smoke.* -- work/x.json` does"),
    ],
)
def test_unknown_result_target_is_answered_with_the_known_ones(project, target, said):
    with pytest.raises(UserError, match=said):
        reports_asked_for(Graph(project), target)


def test_time_left_is_by_the_updates_since_the_start(monkeypatch):
    now, pace = iter((0.0, 10.0, 60.0)), Pace()
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    found = [pace.left(SimpleNamespace(share=share)) for share in (0.2, 0.21, 0.6)]
    assert found == ["", "", ": 1:00 left, by its pace"]


@pytest.mark.parametrize("command", ["status", "results"])
@pytest.mark.parametrize("every", ["-1", "0", "nan", "1e300"])
def test_a_pause_that_nobody_could_make_is_refused(command, every, capsys):
    with pytest.raises(SystemExit):
        REPRISE.parse([command, "--watch", f"--every={every}"])
    assert "argument --every: must be above 0" in capsys.readouterr().err


def test_make_hands_its_cores_and_settings_on(monkeypatch, project):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("reprise.cli.make.Workflow", started := Mock(side_effect=UserError("begun")))
    with pytest.raises(UserError, match="begun"):
        make(("weighted",), cores="3", settings=("scale=smoke",))
    assert started.call_args.args[0] == ["--config", 'scale="smoke"', "--cores", "3", "--", "weighted"]
