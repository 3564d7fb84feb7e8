"""The screen of a campaign shows the state of each run, from its files and Slurm's queue, and the remedy."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from copied_project import ROOT
from fabricated import append, folder_of, held, touch, write_failure, write_training, write_training_beside
from made_records import decoded, progress_line, start_cost, training_cost
from programs import install
from real_project import real_project

from pipeline.cluster.queue import Queue
from pipeline.core.artifacts import Encoded, Score, Trained, Translation
from pipeline.core.errors import in_hours
from pipeline.core.records.jobs import Submission, record_event
from pipeline.planning.plan import gpu_hours
from pipeline.workflow.campaign import Campaign, Watch, describe_driver
from pipeline.workflow.drivers import DRIVERS, Driver, machine_id, read_drivers
from pipeline.workflow.graph import Graph, datasets_in, runs_in
from reprise.__main__ import main
from reprise.cli.status import Forecast, command_for

SCALE = "smoke"


@pytest.fixture
def project(tmp_path):
    return real_project({"work": str(tmp_path / "work"), "scale": SCALE})


@pytest.fixture
def runs(project):
    """Return the runs of a paper, in the order in which they are made; their corpora exist."""
    graph = Graph(project)
    artifacts = graph.closure(graph.reports(["weighted"]))
    for name in datasets_in(artifacts):
        touch(project.layout.path(Encoded(name)))
    found = runs_in(artifacts)
    for run in found:
        touch(project.layout.run(run) / "run.yaml")
    return found


@pytest.fixture
def squeue(tmp_path, monkeypatch):
    programs = tmp_path / "bin"
    install(programs / "squeue", f"#!/bin/sh\ncat {programs}/answer\n", monkeypatch)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("REPRISE_QUEUE_INTERVAL", "1e-9")

    def answer(*lines: str) -> None:
        (programs / "answer").write_text("".join(f"{line}\n" for line in lines))

    return answer


def submit(project, run, job: str) -> None:
    note = Submission(key="toy", launcher="slurm", job=job, name="toy", time=0.0, code="toy")
    (folder_of(project, run) / "slurm").mkdir()
    record_event(folder_of(project, run), note)


def watching(project) -> Watch:
    return Watch(project, Graph(project).reports(["weighted"]))


def states(project) -> dict:
    return {state.run: state for state in watching(project).snapshot().runs}


def settings(project) -> list[str]:
    return ["--set", f"work={project.layout.work}", "--set", f"scale={SCALE}"]


def screen(project, capsys, *options: str) -> str:
    """Return what `status` prints, with single spaces and without its line ends."""
    assert main(["status", "weighted", *settings(project), "--no-forecast", *options]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_status_is_printed_before_the_forecast_is_computed(project, runs, capsys, monkeypatch):
    shown = []

    def counted(forecast: Forecast, campaign: Campaign) -> dict[str, float]:
        shown.append(capsys.readouterr().out)
        return {"A100": 3.2}

    monkeypatch.setattr(Forecast, "hours", counted)
    assert main(["status", "weighted", *settings(project)]) == 0
    assert f"{len(runs)} not run" in shown[0] and "remaining" not in shown[0]
    assert capsys.readouterr().out == "\nremaining, by the plan: 3.2 h on A100\n"


def test_status_suggests_a_plan_command_of_the_same_scale(project, runs, capsys, monkeypatch):
    monkeypatch.setattr(Forecast, "hours", lambda *_: {})
    assert main(["status", "weighted", *settings(project)]) == 0
    config = f"--config scale={SCALE} work={project.layout.work}"
    assert f"unknown until `snakemake {config} -- plan` has measured" in " ".join(capsys.readouterr().out.split())


def test_uncalibrated_cpu_needs_no_plan(project, runs, monkeypatch):
    monkeypatch.setattr(Forecast, "renew", lambda *_: pytest.fail("computed a plan"))
    forecast, campaign = Forecast(project, ["weighted"]), watching(project).snapshot()
    assert forecast.hours(campaign) == {}
    over = {kind: (wanted, wanted) for kind, (_, wanted) in campaign.made.items()}
    assert forecast.hours(replace(campaign, made=over)) == {"this machine": 0.0}


def test_long_status_title_gets_its_own_line(project, capsys):
    for papers, title in (([], ", ".join(project.papers)), (["weighted"], "weighted")):
        assert main(["status", *papers, *settings(project), "--no-forecast"]) == 0
        first, second, *_ = capsys.readouterr().out.split("\n")
        name, driver, _ = f"{first}\n{second}".partition("no Snakemake is running")
        assert name.rstrip(" ") == f"Reprise: {title} at scale {SCALE}" + "\n" * (not papers) and driver


def test_state_of_a_run_follows_from_its_files(project, runs):
    done, works, broken, stopped, untouched = runs[:5]
    write_training(project, done, [2.0], [2.0])
    append(folder_of(project, works), [progress_line(17)])
    write_failure(folder_of(project, broken), "no memory for a batch of 3 x 9; lower micro_batch_tokens")
    touch(folder_of(project, stopped) / "checkpoints/step-9.resume.safetensors")
    with held(folder_of(project, works)):
        found = states(project)
    assert [found[run].state for run in runs[:5]] == ["done", "running", "failed", "not run", "not run"]
    assert found[works].step == 17 and found[works].progress.tokens_per_s == 1234.0
    assert found[broken].why.startswith("no memory for a batch") and "fix it" in found[broken].remedy
    assert (found[stopped].step, found[stopped].why) == (9, "stopped after step 9")
    assert found[untouched].why == ""


def test_run_trained_with_other_settings_is_reported_as_such(project, runs, capsys):
    one, two, begun = runs[:3]
    for run in (one, two, begun):
        write_training_beside(project, run, label_smoothing=0.3)
    touch(folder_of(project, begun) / "checkpoints/step-9.resume.safetensors")
    found = states(project)
    why = "trained with other settings, where training.label_smoothing is 0.3 (here 0.1)"
    assert (found[one].state, found[one].why, found[two].why) == ("not run", why, why)
    assert found[begun].why == "stopped after step 9"
    others = [run.folder for run in runs if run not in (one, two, begun)]
    said = screen(project, capsys)
    assert f"2 not run {why}: {one.folder}, {two.folder} " in said
    assert f"{len(others)} not run {others[0]}, {others[1]} and {len(others) - 2} more" in said


FIVE = {"label_smoothing": 0.3, "adam_beta1": 0.8, "adam_beta2": 0.9, "adam_eps": 1e-8, "clip_norm": 5.0}


@pytest.mark.parametrize(
    ("changed", "end"),
    [(FIVE, "; 2 more"), ({}, None), ({"lr_decay": "steep"}, None)],
    ids=["many", "none, as in a copy", "unknown ones"],
)
def test_differing_settings_are_counted_and_others_ignored(project, runs, changed, end):
    write_training_beside(project, runs[0], **changed)
    why = states(project)[runs[0]].why
    assert why.endswith(end) if end else why == ""


SKIPPED = dict.fromkeys(("loss_per_token", "nll_per_token", "perplexity", "gradient_norm"))
"""Fields of a progress line that are null if all steps were skipped."""


def test_only_a_training_that_waits_for_batches_is_reported(project, runs):
    slow, well = (folder_of(project, run) for run in runs[:2])
    append(slow, [progress_line(17, loader_share=0.353)])
    append(well, [progress_line(17, loader_share=0.004)])
    with held(slow), held(well):
        found = states(project)
    assert found[runs[0]].why == "waits for its batches 35 % of the time" and "cores" in found[runs[0]].remedy
    assert (found[runs[1]].why, found[runs[1]].remedy) == ("", "")


@pytest.mark.parametrize(("values", "shown"), [({}, "7.39 1,234"), (SKIPPED, "1,234")])
def test_skipped_steps_of_a_running_training_are_counted(project, runs, capsys, values, shown):
    folder = folder_of(project, runs[0])
    append(folder, [progress_line(17, skipped=3, **values)])
    with held(folder):
        state, said = states(project)[runs[0]], screen(project, capsys)
    assert state.why == "skipped 3 steps, as their loss or gradient was not finite" and "train.log" in state.remedy
    assert re.search(rf" 1:01:[34]\d {shown}\b", said)  # the time left shrinks by the seconds that the test takes


def test_silent_training_is_reported_and_its_time_left_shrinks(project, runs):
    folder = folder_of(project, runs[0])
    append(folder, [progress_line(17)])
    os.utime(folder / "progress.jsonl", (time.time() - 1200,) * 2)
    with held(folder):
        state = states(project)[runs[0]]
    assert state.progress.seconds_left == pytest.approx(2500, abs=30)
    assert state.why == "has logged nothing for 20 minutes" and "train.log" in state.remedy


NEVER = "change its `gpus`, `threads` or `mem_mb` in workflow/scales; then `scancel 7`"


@pytest.mark.parametrize(
    ("listed", "state", "why", "remedy"),
    [
        ("7|RUNNING|None|n1|toy", "running", "", ""),
        ("7|COMPLETING|None|n1|toy", "running", "", ""),
        ("7|PENDING|Priority||toy", "waiting", "other jobs come first", ""),
        ("7|PENDING|QOSMaxJobsPerUserLimit||toy", "waiting", "as many of your or your group's jobs run", ""),
        ("7|PENDING|JobHeldUser||toy", "waiting", "a user of your account has put it on hold", "`scontrol release 7`"),
        ("7|PENDING|AssocMaxGRESPerJob||toy", "waiting", "it asks for more or less", NEVER),
        ("7|CANCELLED|None||toy", "not run", "", ""),
        ("8|RUNNING|None|n1|toy", "not run", "", ""),
    ],
)
def test_slurm_job_shows_whether_its_run_works_or_waits(project, runs, squeue, listed, state, why, remedy):
    submit(project, runs[0], "7")
    squeue(listed)
    found = states(project)[runs[0]]
    assert (found.state, found.why[: len(why)]) == (state, why)
    assert found.remedy.startswith(remedy) and bool(found.remedy) == bool(remedy)


def test_status_asks_slurm_as_often_as_launchers_do(project, runs, squeue, monkeypatch, tmp_path):
    """Both share one snapshot, and its interval."""
    submit(project, runs[0], "7")
    squeue("7|RUNNING|None|n1|toy")
    monkeypatch.setenv("REPRISE_QUEUE_INTERVAL", "0.5")
    Watch(project, Graph(project).reports(["weighted"])).snapshot()
    (snapshot,) = tmp_path.rglob("slurm-queue*.lock")
    assert json.loads(snapshot.read_text())["interval"] == 0.5


def test_a_run_says_what_it_is_waiting_for(project, runs):
    project.layout.path(Encoded(runs[0].dataset)).unlink()
    assert states(project)[runs[0]].why == f"needs the corpus {runs[0].dataset}"


PACKAGES = "python3.12/site-packages"
CODE = {"pipeline/__main__": 9, "pipeline/models/mine/model": 12}
CODE |= {f".venv/lib/{PACKAGES}/pipeline/nn": 3, f".venv/lib64/{PACKAGES}/torch/nn": 4}


def test_failed_stage_is_reported_with_its_cause_until_retried(project, runs, capsys):
    log = folder_of(project, runs[0]) / "logs/decode-final.log"
    touch(log, "12:00:00 begins\nerror: x.tok: no space left on the disk; free some\n")
    corpus = project.layout.corpus(runs[0].dataset) / "logs/subwords.log"
    places = [f'File "/home/me/reprise/{path}.py", line {number}, in step' for path, number in CODE.items()]
    touch(corpus, "\n  ".join(["Traceback (most recent call last):", *places]) + "\nKeyError: 'toy'\n")
    said = screen(project, capsys)
    assert "failed decode-final in" in said and "x.tok: no space left on the disk; free some" in said
    assert "failed subwords in" in said and "KeyError: 'toy'" in said
    assert "a bug in pipeline/models/mine/model.py, line 12; if that code is not yours," in " ".join(said.split())
    for name in ("make.log", "make-2.log"):
        touch(project.layout.scale_folder / "logs" / name, "error: x.tok: what `reprise make` said of it, too\n")
    for path in (log, corpus):
        path.write_text("12:00:01 begins again\n")
    assert "failed " not in screen(project, capsys).replace("0 failed ", "")


def test_status_omits_failures_of_unrequested_stages(project, runs, capsys):
    """The logs are of a decoding that was removed, and of stages that no result needs."""
    planning = [project.layout.scale_folder / f"logs/{stage}.log" for stage in ("check-data", "plan", "cost")]
    for log in (folder_of(project, runs[0]) / "logs/decode-old.log", *planning):
        touch(log, "error: x: a fault of long ago\n")
    assert "long ago" not in screen(project, capsys)


def test_hours_are_those_of_every_start_and_decoding_by_device(project, runs):
    artifacts = Graph(project).closure(Graph(project).reports(["weighted"]))
    translations = {artifact.run: artifact for artifact in artifacts if isinstance(artifact, Translation)}
    a100, h100, carried, processor = list(translations)[:4]
    starts = [start_cost(device="NVIDIA A100", processes=8, seconds=1800.0, gpu_hours=4.0)] * 2
    training_cost(*starts).write(folder_of(project, a100) / "cost.json")
    for run in (h100, carried):
        cost = start_cost(device="NVIDIA H100", seconds=1800.0, gpu_hours=0.5)
        training_cost(cost).write(folder_of(project, run) / "cost.json")
    training_cost(start_cost(device="AMD EPYC", seconds=1800.0)).write(folder_of(project, processor) / "cost.json")
    kinds = {a100: ("cuda", 3600.0), h100: ("cuda", 7200.0), carried: ("cpu", 900.0), processor: ("cpu", 3600.0)}
    for run, (device, seconds) in kinds.items():
        decoded(device=device, seconds=seconds).write(
            touch(project.layout.path(translations[run]).with_suffix(".json"))
        )
    expected = {"NVIDIA A100": 2 * 8 * 0.5 + 1, "NVIDIA H100": 0.5 + 0.5 + 2, "cpu": 0.25, "AMD EPYC": 0.5 + 1}
    assert watching(project).snapshot().hours == pytest.approx(expected)


def test_output_of_other_decoding_settings_is_not_counted(project, runs):
    graph = Graph(project)
    artifacts = graph.closure(graph.reports(["weighted"]))
    output = next(artifact for artifact in artifacts if isinstance(artifact, Translation))
    score = Score(output.run, "scores", output.decoding, output.split)
    for artifact in (output, score):
        touch(project.layout.path(artifact))
    settings = project.decoding(output.run.paper, output.run.system, output.decoding).model_dump(mode="json")
    counted = []
    for beam in (settings["beam_size"], settings["beam_size"] + 1):
        record = decoded(decoding=settings | {"beam_size": beam})
        record.write(project.layout.path(output).with_suffix(".json"))
        made = Watch(project, graph.reports(["weighted"])).snapshot().made
        counted.append((made["decodings"][0], made["scores"][0]))
    assert score in artifacts and counted == [(1, 1), (0, 0)]


def test_status_screen_fits_100_columns_and_counts_each_run_once(project, runs, capsys):
    write_training(project, runs[0], [2.0], [2.0])
    write_failure(folder_of(project, runs[1]), "a bug", "Traceback …")
    assert main(["status", "weighted", *settings(project), "--no-forecast"]) == 0
    said = capsys.readouterr().out
    assert f"1 done  0 running  0 waiting  1 failed  {len(runs) - 2} not run" in said
    assert max(map(len, said.split("\n"))) <= 100
    assert "please report it" in said
    command = command_for([f"work={project.layout.work}", f"scale={SCALE}"], ["weighted"], by_slurm=False)
    assert f"no Snakemake is running; to continue: {command}" in " ".join(said.split())


def test_command_names_a_lost_training_whose_reports_exist(project, runs, capsys, tmp_path, monkeypatch):
    for name in ("config.yaml", "workflow"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    for run in runs[1:]:
        write_training(project, run, [2.0], [2.0])
    for report in Graph(project).reports(["weighted"]):
        touch(project.layout.path(report))
    trained = str(project.layout.path(Trained(runs[0])))
    assert f"--weighted{trained}" in screen(project, capsys).replace(" ", "")  # wherever lines end
    project.layout.path(Graph(project).reports(["weighted"])[0]).unlink()
    assert trained not in screen(project, capsys).replace(" ", "")


def test_a_program_reads_the_same_as_json(project, runs, capsys):
    write_failure(folder_of(project, runs[1]), "a <bug>")
    campaign = json.loads(screen(project, capsys, "--json"))
    assert [run["state"] for run in campaign["runs"]].count("failed") == 1
    assert campaign["made"]["trainings"] == [0, len(runs)]


def test_json_of_a_training_that_diverged_has_no_infinity(project, runs, capsys):
    """JSON has no such number, and most programs refuse the word."""
    with held(folder := folder_of(project, runs[0])):
        append(folder, [progress_line(10, perplexity=float("inf"))])
        text = screen(project, capsys, "--json")
    found = json.loads(text, parse_constant=pytest.fail)["runs"]
    assert [run["progress"]["perplexity"] for run in found if run["progress"]] == [None]


def test_forecast_of_status_falls_with_every_step(project, runs):
    forecast = Forecast(real_project({"work": str(project.layout.work), "scale": "paper"}), ["weighted"])
    watch = watching(forecast.project)
    begun = forecast.hours(watch.snapshot())
    assert set(begun) == {"A100", "H100"} and begun["A100"] > begun["H100"] > 0
    run = watch.snapshot().runs[0]
    folder = folder_of(forecast.project, run.run)
    with held(folder):
        append(folder, [progress_line(run.steps // 2, max_steps=run.steps)])
        later = forecast.hours(watch.snapshot())
    whole = next(job for job in forecast.planned if job.kind == "train" and job.run == run.run)
    assert begun["A100"] - later["A100"] == pytest.approx(gpu_hours(whole, forecast.devices["A100"]) / 2)


def test_driver_that_ended_on_this_machine_is_not_named():
    here = {"host": os.uname().nodename, "machine": machine_id(), "pid": 2**22 + 1}
    assert describe_driver(Driver(**here, job=None, began=time.time(), makes=[]), []) == ""


@pytest.fixture
def driver(project, runs, monkeypatch):
    """Register a job on another node as the driver of some files, by default trained weights."""
    folder = project.layout.work.parent
    monkeypatch.setattr("pipeline.workflow.campaign.read_drivers", lambda root: read_drivers(folder))

    def note(job: str | None = "123", began: float | None = None, makes=None, **other) -> None:
        paths = [str(project.layout.path(makes or Trained(runs[0])))]
        elsewhere = {"host": "node7", "machine": "another", "pid": 1, "job": job, "began": began or time.time()}
        Driver(**elsewhere | other, makes=paths).write(folder / DRIVERS / f"{job}.json")

    return note


@pytest.mark.parametrize("answers", ["no squeue", "squeue fails", "squeue has not been asked since the driver began"])
def test_driver_unknown_to_slurm_is_assumed_to_run(project, squeue, driver, capsys, monkeypatch, tmp_path, answers):
    driver()
    if answers == "no squeue":
        monkeypatch.setattr("shutil.which", lambda name: None)
    elif answers == "squeue fails":
        (tmp_path / "bin/squeue").write_text("#!/bin/sh\nexit 1\n")
    else:
        squeue("7|RUNNING|None|n1|toy")
        Queue(600.0).jobs(0.0)
        driver(began=time.time() + 5)
    said = screen(project, capsys)
    assert "run by snakemake, job 123 on node7, if it still runs" in said and "to continue:" not in said


def test_status_names_a_driver_while_slurm_knows_it(project, squeue, driver):
    driver(began=time.time() - 60)
    squeue("123|RUNNING|None|node7|toy")
    assert watching(project).snapshot().driver == "snakemake, job 123 on node7"
    squeue("123|COMPLETED|None|node7|toy")
    assert watching(project).snapshot().driver == ""


def test_status_shows_only_drivers_of_the_watched_targets(project, runs, driver):
    driver(job=None, pid=11)
    driver(job="other", makes=Encoded("wmt14-en-de"))
    assert watching(project).snapshot().driver == "snakemake, process 11 on node7, if it still runs"


def test_only_what_a_driver_makes_waits_for_its_turn(project, driver):
    before = watching(project).snapshot().of_state("not run")
    assert len(before) > 1
    driver(job=None, pid=11, makes=Trained(before[0].run))
    after = watching(project).snapshot()
    assert [run.run for run in after.of_state("waiting")] == [before[0].run]
    assert len(after.of_state("not run")) == len(before) - 1


def test_durations_are_formatted_for_people():
    assert [in_hours(count) for count in (1240.4, 12.0, 9.96, 3.25, 1.0, 0.25, 0.01, 0.0)] == [
        *("1,240 h", "12 h", "10 h", "3.2 h", "1.0 h", "15 min", "36 s", "0 s"),
    ]


def test_the_command_that_goes_on_has_the_same_settings():
    command = command_for(["scale=small", "work=/a b"], ["weighted"], by_slurm=False)
    assert command.endswith("--config scale=small 'work=/a b' -- weighted")


def test_runs_submitted_to_slurm_continue_there(project, runs, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert command_for([], ["all"], by_slurm=True) == "snakemake --profile slurm -- all"
    assert not watching(project).has_submitted
    (folder_of(project, runs[0]) / "slurm").mkdir(parents=True)
    assert watching(project).has_submitted


def test_on_a_terminal_the_screen_is_renewed_until_an_interrupt(project, runs):
    """Run `reprise status --watch` in its own terminal."""
    controller, terminal = os.openpty()
    command = [sys.executable, "-m", "reprise", "status", "weighted", *settings(project), "--no-forecast"]
    command += ["--watch", "--every", "0.1"]
    ends = {"start_new_session": True, "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)}
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, cwd=ROOT, **ends)
    os.close(terminal)
    said = b""
    while said.count(b"Reprise: weighted at scale smoke") < 3:
        said += os.read(controller, 1 << 16)
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # once the other end is closed
        while os.read(controller, 1 << 16):
            pass
    assert process.wait(20) == 130
    os.close(controller)
