"""The plan has every job of the workflow, its progress, and totals; later the actual cost stands next to it."""

import csv
import shlex
from collections import Counter
from dataclasses import replace

import pytest
from copied_project import call, jobs, require
from made_records import decoded, start_cost, training_cost
from real_project import project_at

from pipeline.__main__ import main
from pipeline.core.artifacts import (
    Alignments,
    AttentionMaps,
    Averaged,
    Calibration,
    Parse,
    RunArtifact,
    RunId,
    Score,
    Trained,
    Transcript,
    Translation,
    Tuned,
)
from pipeline.core.errors import UserError
from pipeline.core.provenance import ROOT
from pipeline.planning.cost_table import compare, read_plan
from pipeline.planning.data_files import DataFile
from pipeline.planning.devices import COUNTED, GRAPH_LAUNCH_S, load_devices
from pipeline.planning.jobs import Jobs
from pipeline.planning.plan import gpu_hours, notes, render, total_cells, training_cells
from pipeline.planning.run_forecast import LONGER, MeasuredSpeed, Point, forward_flops
from pipeline.workflow.file_checks import bytes_of
from pipeline.workflow.graph import Graph, datasets_in, runs_in
from pipeline.workflow.targets import snakemake_command

DEVICES = ROOT / "workflow/devices.yaml"


@pytest.fixture(scope="module")
def planned_at(tmp_path_factory):
    """A work folder with a plan of scale smoke."""
    folder = tmp_path_factory.mktemp("work")
    measured = {"update_flops": 1e9, "update_s": 1.0, "decoding_flops": 1e9, "decoding_s": 2.0}
    points = tuple(Point(shape="", family=kind, **measured) for kind in ("transformer", "weighted_transformer"))
    MeasuredSpeed(device="some processor", threads=1, points=points).write(folder / "calibration.json")
    settings = ["--set", "scale=smoke", "--set", f"work={folder}", "--set", "licensed={}", "--set", "seeds=1"]
    files = ["--calibration", str(folder / "calibration.json"), "--out", str(folder / "plan.csv")]
    assert main(["plan", "--root", str(ROOT), *settings, *files]) == 0
    return folder


@pytest.fixture
def plan(planned_at):
    return read_plan(planned_at / "plan.csv", project_at(planned_at))


@pytest.fixture(scope="module")
def printed_size(tmp_path_factory):
    """Jobs of a paper at the scale of the paper."""
    return Jobs(project_at(tmp_path_factory.mktemp("paper"), scale="paper"), ["attention"], None)


def test_every_artifact_has_its_job_and_no_job_comes_twice(plan, tmp_path):
    project = project_at(tmp_path)
    graph = Graph(project)
    artifacts = graph.closure(graph.reports(project.papers))
    jobs = Counter(row["job"] for row in plan)
    made = Counter(type(artifact) for artifact in artifacts)
    assert len({(row["job"], row["name"]) for row in plan}) == len(plan)
    assert jobs["train"] == made[Trained] == len(runs_in(artifacts))
    assert jobs["translate"] == made[Translation] + made[Transcript] + made[Parse]
    assert jobs["tune"] == made[Tuned] > 0 and jobs["average"] == made[Averaged]
    read = [artifact for artifact in artifacts if isinstance(artifact, Score) and artifact.measure == "perplexities"]
    where = Counter(f"{score.split}@{score.scored_on}" if score.scored_on else score.split for score in read)
    assert Counter(row["name"].split()[-1] for row in plan if row["job"] == "perplexity") == where
    assert any("@" in place for place in where) and len(where) > 1
    assert jobs["attention"] == made[AttentionMaps] + made[Alignments]
    assert jobs["generate"] == jobs["encode"] + jobs["features"] == len(datasets_in(artifacts))
    assert jobs["speak"] == jobs["features"] > 0 < jobs["prepare"] < jobs["encode"]


def test_columns_are_whole_jobs_and_hours_follow_from_operations(plan):
    base = next(row for row in plan if row["name"] == "attention/base/grammar-smoke-en-de/seed1")
    assert base["done"] == "0.0" and int(base["steps"]) == 50
    assert float(base["hours_here"]) == pytest.approx(float(base["flops"]) / 1e9 / 3600, rel=1e-3)
    assert int(base["peak_disk_bytes"]) > int(base["disk_bytes"]) > 4 * int(base["parameters"])
    translation = next(row for row in plan if row["job"] == "translate")
    assert translation["hours_here"] and not translation["parameters"]
    by_operations = [float(row["flops"]) / (0.33 * 9.5e12) / 3600 for row in (translation, base)]
    assert float(translation["gpu_hours_P100"]) == pytest.approx(by_operations[0], rel=1e-3)
    launches = float(base["gpu_hours_P100"]) * 3600 / (50 * 600 * GRAPH_LAUNCH_S)  # so small a model waits for them
    assert launches == pytest.approx(round(launches), rel=1e-3)
    assert round(launches) >= 1 and float(base["gpu_hours_P100"]) > by_operations[1]


def test_the_summary_has_totals_and_says_what_it_rests_on(planned_at):
    text = (planned_at / "plan.md").read_text()
    assert "| all " in text and "| left to do" in text and "on some processor, threads: 1" in text
    assert "Downloads: 0 B" in text and "reprise free" in text


def test_notes_name_architectures_without_counted_launches(printed_size, monkeypatch):
    assert not any("not counted" in note for note in notes(printed_size.project, printed_size))
    monkeypatch.delitem(COUNTED, "transformer")
    (note,) = (note for note in notes(printed_size.project, printed_size) if "not counted" in note)
    assert note.startswith("GPUs: launches of transformer are not counted")


def test_a_terminal_shows_the_totals_and_names_the_rest(tmp_path, caplog):
    caplog.set_level("INFO")
    settings = ["--set", "scale=smoke", "--set", f"work={tmp_path}", "--set", "licensed={}", "--set", "seeds=1"]
    out, papers = ["--out", str(tmp_path / "plan.csv")], ["--paper", "weighted"]
    assert main(["plan", "--root", str(ROOT), *settings, *papers, *out]) == 0
    shown, written = caplog.text, (tmp_path / "plan.md").read_text()
    assert written.index("| left to do") < written.index("weighted/C/") < written.index("smallest effect")
    assert "| left to do" in shown and "weighted/C/" not in shown
    assert f"{tmp_path}/plan.md has each training, and the smallest effect" in shown


def test_plan_lists_only_jobs_not_done(tmp_path):
    """One training of the paper is done, with its translations, and another one is half done."""
    project = project_at(tmp_path, scale="demo")
    artifacts = Graph(project).closure(Graph(project).reports(["weighted"]))
    first, second, *_ = runs_in(artifacts)
    checkpoints = project.layout.run(second) / "checkpoints"
    steps = project.run_spec(second).training.max_steps
    made = [artifact for artifact in artifacts if isinstance(artifact, RunArtifact) and artifact.run == first]
    for path in (*map(project.layout.path, made), checkpoints / f"step-{steps // 2}.resume.safetensors"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    jobs = Jobs(project, ["weighted"], None)
    done = {(job.kind, job.run): job.done for job in jobs.all if job.run in (first, second)}
    assert done.pop(("train", second)) == pytest.approx(0.5, abs=0.01)
    assert {share for (_, run), share in done.items() if run == first} == {1.0}
    rows = [line.split("|") for line in render(project, jobs, load_devices(DEVICES)).split("\n") if line[:2] == "| "]
    operations = {row[1].strip(): float(row[2]) for row in rows if row[1].strip() in ("all", "left to do")}
    computing = [job for job in jobs.all if job.on_device]
    left = sum(job.flops for job in computing if job.run not in (first, second))
    left += sum(job.flops * (0.5 if job.kind == "train" else 1) for job in computing if job.run == second)
    assert operations["all"] == pytest.approx(sum(job.flops for job in computing), rel=0.01)
    assert operations["left to do"] == pytest.approx(left, rel=0.01) != operations["all"]
    assert total_cells("all", computing, {}, lambda job: 1.0)[2] == "", "no rates are known here"
    one = replace(next(job for job in computing if job.kind == "train"), seconds=3.6e7)
    assert total_cells("half", [one, computing[0]], {}, lambda job: 0.5)[2] == "5,000 h"
    assert training_cells(one, jobs.forecast(one.run), {})[6] == "10,000 h"


def test_averaging_is_a_job_where_a_decoding_averages(printed_size):
    graph, jobs = Graph(printed_size.project), printed_size
    made = [artifact for artifact in graph.closure(graph.reports(["attention"])) if isinstance(artifact, Averaged)]
    averaging = [job for job in jobs.all if job.kind == "average"]
    assert (
        {job.name for job in averaging} == {f"{artifact.run.folder} {artifact.decoding}" for artifact in made} != set()
    )
    trained = {job.run: job.forecast.parameters for job in jobs.all if job.kind == "train"}
    assert [job.disk_bytes for job in averaging] == [4 * trained[artifact.run] for artifact in made]


@pytest.mark.parametrize(("sentences", "share"), [(0.5, 0.5), (1, 1), (2, 1)])
def test_tuning_decodes_at_most_the_development_set(tmp_path, monkeypatch, sentences, share):
    """Once for each pair of weights. `sentences` is how many it takes, `share` how many there are, of the whole set."""
    project = project_at(tmp_path)
    graph = Graph(project)
    asked = next(artifact for artifact in graph.closure(graph.reports(["coldfusion"])) if isinstance(artifact, Tuned))
    decoding = project.decoding("coldfusion", asked.run.system, asked.decoding)
    jobs = Jobs(project, ["coldfusion"], None)
    pairs = jobs.corpus(asked.run.dataset).pairs_of("dev")
    changed = decoding.model_copy(update={"tuning_sentences": round(sentences * pairs)})
    monkeypatch.setattr(project, "decoding", lambda *name: changed)
    forecast = jobs.forecast(asked.run)
    (job,) = jobs.following_jobs(asked, forecast)
    once = forward_flops(forecast.spec, jobs.corpus(asked.run.dataset), pairs, decoding.beam_size, LONGER)
    assert job.flops == pytest.approx(share * once * len(decoding.lm_weights) * len(decoding.word_bonuses))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_plan_prices_every_job_in_the_precision_of_its_run(tmp_path, monkeypatch, precision):
    project = project_at(tmp_path)
    specify = project.run_spec

    def in_precision(run):
        spec = specify(run)
        return spec.model_copy(update={"training": spec.training.model_copy(update={"precision": precision})})

    monkeypatch.setattr(project, "run_spec", in_precision)
    a100 = load_devices(DEVICES)["A100"]
    rate = {"fp32": 0.55 * 1.95e13, "bf16": 0.48 * 3.12e14}[precision]
    moved = {"transformer": 2, "weighted_transformer": 4.3}  # bytes an operation and the width of the model
    computing = [job for job in Jobs(project, ["weighted"], None).all if job.on_device]
    assert {job.kind for job in computing} >= {"train", "translate"}
    for job in computing:
        seconds = 1e22 / rate
        if job.forecast and precision == "bf16":
            model = job.forecast.spec.model
            seconds = 1e22 / 2.3e14 + 1e22 * moved[model.architecture] / model.d_model / 1.5e12
        assert gpu_hours(replace(job, flops=1e22), a100) == pytest.approx(seconds / 3600)


def test_plan_without_calibration_has_no_local_hours(tmp_path):
    jobs = Jobs(project_at(tmp_path), ["weighted"], None).all
    assert all(job.seconds is None for job in jobs if job.kind in ("train", "translate"))


@pytest.mark.slow
def test_plan_names_a_working_calibration_command(tmp_path):
    """The command makes the file that the plan reads."""
    project = project_at(tmp_path, scale="paper")
    command = snakemake_command(project, project.layout.path(Calibration()))
    assert f"unknown; run `{command}` on the machine" in "\n".join(notes(project, Jobs(project, [], None)))
    program, *words = shlex.split(command)
    assert jobs(require(call(ROOT, program, "-n", "--nolock", *words))) == {"calibrate": 1, "total": 1}


def test_plan_counts_a_shared_download_once(printed_size):
    fetched = {job.name: job.download_bytes for job in printed_size.all if job.kind == "download"}
    assert fetched["wmt14-en-de"] > 1.6e9 and fetched["wmt14-en-fr"] > 6.6e9
    shared = fetched["wmt14-en-de"] + fetched["wmt14-en-fr"] - sum(printed_size.to_fetch.values())
    assert shared == pytest.approx(657632379 + 918311367 + 80418416 + 38654961 + 3255445, rel=0.01)


def test_planned_disk_includes_existing_and_future_downloads(printed_size):
    jobs = printed_size
    written, to_come = sum(job.disk_bytes for job in jobs.all), sum(jobs.to_fetch.values())
    assert to_come > 1e9 and jobs.disk_bytes == written + to_come
    (downloads := jobs.project.layout.downloads).mkdir(parents=True)
    (downloads / "of-another-scale.tgz").write_bytes(bytes(1000))
    assert jobs.disk_bytes == written + to_come + 1000


def test_only_data_and_weights_take_disk(tmp_path, printed_size):
    jobs = printed_size.all + Jobs(project_at(tmp_path), ["coldfusion"], None).all
    data = {"download", "generate", "prepare", "encode", "features", "speak"}
    assert {job.kind for job in jobs if job.disk_bytes > 0} <= data | {"train", "average"}
    assert {job.kind for job in jobs if job.peak_bytes > 0} == {"train"}
    assert {job.kind for job in jobs if job.download_bytes > 0} <= {"download"}
    assert all(min(job.disk_bytes, job.peak_bytes, job.download_bytes, job.flops) >= 0 for job in jobs)


def test_a_link_to_a_download_that_is_gone_has_no_size(tmp_path):
    (tmp_path / "here").write_bytes(b"1234")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    assert bytes_of(tmp_path) == 4


def test_plan_counts_only_missing_bytes_of_a_file():
    states = ("missing", "partial", "damaged", "present", "verified")
    assert [DataFile("a", state, "", 10).to_fetch for state in states] == [10, 10, 10, 0, 0]
    assert DataFile("a", "partial", "", 10, done=7).to_fetch == 3
    assert DataFile("a", "partial", "", 10, done=12).to_fetch == DataFile("a", "missing", "").to_fetch == 0


def start(**changes):
    usual = {"device": "some processor", "threads": 2, "processes": 1, "seconds": 100.0, "processor_seconds": 180.0}
    return usual | {"gpu_hours": 0.0} | changes


def cost_of(project, planned, starts, steps):
    """Return the row of a training, whose first start took all the steps."""
    made = [start_cost(**start, steps=steps if start is starts[0] else 0) for start in starts]
    training_cost(*made).write(project.layout.run(RunId.of(planned["name"])) / "cost.json")
    return compare(project, planned, ["P100", "A100"])


@pytest.fixture
def training(plan):
    return next(row for row in plan if row["job"] == "train")


def test_a_fact_stands_next_to_its_forecast(training, tmp_path):
    project = project_at(tmp_path)
    assert compare(project, training, []) is None
    row = cost_of(project, training, [start(), start()], int(training["steps"]) // 2)
    forecast = float(training["hours_here"]) / 2
    processor_s = 180  # two starts, over two threads
    *hours, ratio = (float(row[name]) for name in ("hours_forecast", "hours", "processor_hours", "ratio"))
    assert hours == pytest.approx([forecast, 200 / 3600, processor_s / 3600], rel=1e-3)
    assert ratio == pytest.approx(processor_s / 3600 / forecast, rel=1e-2)
    row = cost_of(project, training, [start()], 0)  # stopped before its first step
    assert (row["hours_forecast"], row["ratio"]) == ("0", "")


def test_a_gpu_that_is_named_is_compared_with_its_own_forecast(training, tmp_path):
    project, steps = project_at(tmp_path), int(training["steps"])
    row = cost_of(project, training, [start(device="NVIDIA A100-SXM4-80GB", gpu_hours=2.0)], steps)
    assert float(row["ratio"]) == pytest.approx(2.0 / float(training["gpu_hours_A100"]), rel=1e-3)
    for unknown in ("NVIDIA B300", "NVIDIA RTX A1000 Laptop GPU"):
        row = cost_of(project, training | {"hours_here": ""}, [start(device=unknown, gpu_hours=2.0)], steps)
        assert row["ratio"] == row["hours_forecast"] == "" and row["gpu_hours"] == "2"
    older = {name: value for name, value in training.items() if name != "gpu_hours_A100"}  # a plan without this GPU
    assert cost_of(project, older, [start(device="NVIDIA A100-SXM4-80GB", gpu_hours=2.0)], steps)["ratio"] == ""


def test_compare_has_transcription_rows_and_gpu_forecasts(plan, tmp_path):
    project = project_at(tmp_path)
    spoken = next(row for row in plan if row["job"] == "translate" and "@" in row["name"])
    folder, decoding, split = spoken["name"].split()
    run = project.layout.run(RunId.of(folder))
    decoded(device="cpu", seconds=36.0).write(run / f"transcripts/{decoding}/{split}.json")
    assert compare(project, spoken, ["A100"])["hours"] == "0.01"
    decoded(device="cuda", seconds=36.0).write(run / f"transcripts/{decoding}/{split}.json")
    assert compare(project, spoken, ["A100"])["hours_forecast"] == "", "which one, nobody knows"
    training_cost(start_cost(), start_cost(device="NVIDIA A100-SXM4-80GB", gpu_hours=2.0)).write(run / "cost.json")
    row = compare(project, spoken | {"gpu_hours_A100": "0.02"}, ["A100"])
    assert float(row["ratio"]) == pytest.approx(0.5)


def test_the_cost_table_is_written_from_what_there_is(plan, planned_at, tmp_path, caplog):
    caplog.set_level("INFO")
    translated = next(row for row in plan if row["job"] == "translate")
    folder, decoding, split = translated["name"].split()
    report = project_at(tmp_path).layout.run(RunId.of(folder)) / f"translations/{decoding}/{split}.json"
    decoded(device="cpu", seconds=36.0).write(report)
    out = tmp_path / "cost.csv"
    command = ["cost", "--root", str(ROOT), "--set", "scale=smoke", "--set", f"work={tmp_path}"]
    assert main([*command, "--plan", str(planned_at / "plan.csv"), "--out", str(out)]) == 0
    with open(out, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == [translated["name"]] and rows[0]["hours"] == "0.01"
    assert caplog.messages[-2:] == [f"translate {translated['name']}: ratio {rows[0]['ratio']}", f"{out}: 1 job"]


def test_missing_plan_names_the_plan_command_of_the_scale(tmp_path):
    said = r"nothing\.csv: no such file; `snakemake --config scale=smoke .*-- plan` writes"
    with pytest.raises(UserError, match=said):
        read_plan(tmp_path / "nothing.csv", project_at(tmp_path))
