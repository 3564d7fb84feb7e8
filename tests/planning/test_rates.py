"""Seconds come from the measured shape, or lie between those of its neighbours; every shape is measured in turn."""

from dataclasses import replace
from itertools import count, pairwise

import pytest
import torch
from real_project import project_at
from tape import TapeRecorder

from pipeline.__main__ import main
from pipeline.core.artifacts import RunId
from pipeline.core.errors import UserError
from pipeline.core.provenance import ROOT
from pipeline.planning import calibrate
from pipeline.planning.calibrate import bisected, interleaved, measure, shapes
from pipeline.planning.corpus_size import Corpus
from pipeline.planning.run_forecast import MeasuredSpeed, Point, family_of, forecast_run, shape_of

pytestmark = pytest.mark.usefixtures("loaded_once")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return project_at(tmp_path_factory.mktemp("work"))


@pytest.fixture(scope="module")
def groups(project):
    return shapes(project)


def of(project, system, paper="attention"):
    """Return the forecast of a system."""
    run = RunId(paper, system, "grammar-smoke-en-de", 1)
    corpus = Corpus.of(project.dataset_records[run.dataset], project.root / "nowhere")
    return forecast_run(project.run_spec(run), corpus)


def point(shape="", family="transformer", flops=1e9, rate=1e9):
    seconds = {"update_s": flops / rate, "decoding_s": 1e-2}
    return Point(shape=shape, family=family, update_flops=flops, decoding_flops=1e6, **seconds)


def calibration(*points):
    return MeasuredSpeed(device="here", threads=1, points=points)


def test_a_measured_shape_has_its_own_rate(project):
    forecast = of(project, "base")
    others = (point(flops=1e3, rate=1), point(flops=1e13, rate=1))
    measured = calibration(others[0], point(forecast.shape, flops=5e8, rate=3e9), others[1])
    assert measured.training_seconds(forecast) == pytest.approx(forecast.flops / 3e9)
    assert measured.decoding_seconds(forecast, 1e9) == pytest.approx(10)


def test_another_shape_lies_between_its_neighbours_of_its_family(project):
    forecast = of(project, "base")
    near = [point(flops=forecast.step_flops * factor, rate=rate) for factor, rate in ((0.1, 1e9), (10, 4e9))]
    measured = calibration(near[1], point(family="other", flops=forecast.step_flops, rate=1), near[0])
    assert measured.rate("training", forecast) == pytest.approx(2e9)
    assert measured.rate("training", replace(forecast, step_flops=1e-3 * forecast.step_flops)) == pytest.approx(1e9)


def test_an_unmeasured_family_takes_what_there_is(project):
    forecast = replace(of(project, "A", "weighted"), step_flops=1.0)
    assert calibration(point(rate=7e9)).rate("training", forecast) == pytest.approx(7e9)


def test_shapes_ignore_the_amount_of_dropout(project):
    shapes_of = {system: of(project, system).shape for system in ("base", "D1", "D2", "D3", "C4")}
    assert shapes_of["base"] == shapes_of["D2"] == shapes_of["D3"]
    assert len(set(shapes_of.values())) == 3


@pytest.mark.parametrize("count", [1, 2, 3, 4, 9, 30])
def test_extremes_come_first_and_all_come(count):
    order = bisected(list(range(count)))
    assert sorted(order) == list(range(count)) and order[0] == 0 and order[min(1, count - 1)] == count - 1


def test_families_take_turns():
    assert list(interleaved([[1, 2, 3], [10], [20, 30]])) == [1, 10, 20, 3, 30, 2]


def test_every_run_has_a_shape_that_is_measured(groups):
    assert {group[0][0].spec.model.architecture for group in groups} >= {"transformer", "weighted_transformer"}
    for group in groups:
        flops = [forecast.step_flops for forecast, _ in group]
        assert flops == sorted(flops)


def test_a_shape_of_every_family_is_measured_in_an_instant(groups):
    families = set()
    for (forecast, corpus), *_ in groups:
        found = measure(forecast, corpus, torch.device("cpu"))
        assert found.shape == forecast.shape
        assert min(found.update_flops, found.update_s, found.decoding_flops, found.decoding_s) > 0
        assert 1e7 < found.training_rate < 1e13
        families.add(found.family)
    fused = {family for family in families if family.endswith("with fusion")}
    assert len(families) >= 9 and fused == {"speech_attention with fusion", "transformer with fusion"}


@pytest.mark.parametrize("system", ["base", "lm-source"])
def test_replayed_steps_and_searches_are_measured_by_graphs(project, groups, monkeypatch, system):
    forecast, corpus = next(shape for group in groups for shape in group if shape[0].spec.system == system)
    recorders = [TapeRecorder(list) for _ in range(2)]
    made = iter(recorders)
    monkeypatch.setattr(calibrate, "recorder_on", lambda device, spec: next(made))
    found = measure(forecast, corpus, torch.device("cpu"))
    assert min(found.update_s, found.decoding_s) > 0 and found.update_flops == forecast.step_flops
    training, decoding = recorders
    assert training.replayed > calibrate.REPEATS
    assert bool(decoding.replayed) == (system == "base"), "a language model decodes nothing"


@pytest.mark.parametrize("fits", [4, 0])
def test_micro_batches_are_halved_until_memory_suffices(project, groups, monkeypatch, caplog, fits):
    forecast, corpus = next(shape for group in groups for shape in group if shape[0].spec.system == "base")
    run, sizes = calibrate.CapturedSteps.run, []

    def limited(self, step, annealings, micro_batches, seeds, divisor, known):
        sizes.append(len(micro_batches[0].tgt_out))
        if sizes[-1] > fits:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return run(self, step, annealings, micro_batches, seeds, divisor, known)

    monkeypatch.setattr(calibrate.CapturedSteps, "run", limited)
    monkeypatch.setattr(calibrate, "recorder_on", lambda device, spec: TapeRecorder(list))
    if fits:
        assert measure(forecast, corpus, torch.device("cpu")).update_s > 0
    else:
        with pytest.raises(UserError, match="out of memory in step 0 with the smallest micro-batch"):
            measure(forecast, corpus, torch.device("cpu"))
    tried = list(dict.fromkeys(sizes))
    assert len(tried) > 2 and all(later <= earlier / 2 + 1 for earlier, later in pairwise(tried))
    assert max(fits, 1) >= tried[-1] and "out of memory with 1 micro-batch a step" in caplog.text


def test_a_search_is_measured_in_the_precision_of_its_run(project, monkeypatch):
    forecast, narrow = of(project, "base"), []
    training = forecast.spec.training.model_copy(update={"precision": "bf16"})
    changed = replace(forecast, spec=forecast.spec.model_copy(update={"training": training}))
    corpus = Corpus.of(project.dataset_records["grammar-smoke-en-de"], project.root / "nowhere")
    monkeypatch.setattr(calibrate.machine, "precision_on", lambda device, requested: requested)
    monkeypatch.setattr(
        calibrate, "build_decoder", lambda *_, **__: lambda _: narrow.append(torch.is_autocast_enabled("cpu"))
    )
    measure(changed, corpus, torch.device("cpu"))
    assert narrow and all(narrow)


def test_only_a_processor_is_measured_with_fewer_rows():
    cuda, cpu = torch.device("cuda"), torch.device("cpu")
    assert [calibrate.rows_in_time(834, 0.1, device) for device in (cuda, cpu)] == [834, 40]
    assert calibrate.rows_in_time(834, 10.0, cpu) == 1


@pytest.mark.parametrize(
    ("device", "graphs", "replays"), [("cuda", True, True), ("cuda", False, False), ("cpu", True, False)]
)
def test_graphs_are_measured_where_trainings_replay_them(project, monkeypatch, device, graphs, replays):
    monkeypatch.setattr(calibrate, "CudaRecorder", lambda device: "recorder")
    spec = of(project, "base").spec
    spec = spec.model_copy(update={"training": spec.training.model_copy(update={"cuda_graphs": graphs})})
    assert calibrate.recorder_on(torch.device(device), spec) == ("recorder" if replays else None)


def test_work_shorter_than_a_tick_of_the_clock_is_repeated(monkeypatch):
    done = []
    monkeypatch.setattr(calibrate, "clock", lambda device: len(done) // 4 * 0.004)
    assert calibrate.timed(lambda: done.append(1), torch.device("cpu"), 2) == pytest.approx(0.001)


@pytest.mark.parametrize(("seconds", "measured"), [(25, 3), (0, 1), (10**9, None)])
def test_shapes_are_measured_within_the_time_limit_and_logged(
    project, groups, tmp_path, monkeypatch, caplog, seconds, measured
):
    """Each takes ten seconds here."""
    caplog.set_level("INFO")
    all_shapes = [forecast for forecast, _ in interleaved(groups)]
    expected = all_shapes[:measured]
    made = {id(shape): point(f"{number}", rate=(number + 2) * 1e9) for number, shape in enumerate(all_shapes)}
    numbers, now = iter(made.values()), count(step=10)
    monkeypatch.setattr(calibrate, "shapes", lambda project: groups)
    monkeypatch.setattr(calibrate, "measure", lambda forecast, corpus, device: next(numbers))
    monkeypatch.setattr(calibrate.machine, "prepare", lambda *_, strict: strict and pytest.fail("speech needs others"))
    monkeypatch.setattr(calibrate, "clock", lambda device: next(now))
    command = ["calibrate", "--root", str(ROOT), "--set", "scale=smoke", "--set", f"work={project.config.work}"]
    command += ["--seconds", str(seconds), "--threads", "1", "--out", str(tmp_path / "found.json")]
    assert main([*command, "--device", "cpu"]) == 0
    found = MeasuredSpeed.read(tmp_path / "found.json")
    assert [point.shape for point in found.points] == [str(number) for number in range(len(expected))]
    assert found.threads == 1 and found.device
    told = [message for message in caplog.messages if "GFLOP/s" in message]
    for number, (forecast, line) in enumerate(zip(expected, told, strict=True)):
        rates = f"{1 / (number + 2):.3f} s per step, {number + 2:.1f} GFLOP/s; decoding 0.1 GFLOP/s"
        assert line == f"{forecast.spec.system} of {forecast.spec.paper}: {rates}"


def test_fusion_makes_another_shape(groups):
    forecast = next(shape for group in groups for shape, _ in group if shape.spec.fusion is not None)
    alone = forecast.spec.model_copy(update={"fusion": None, "language_model": None})
    assert forecast.shape != shape_of(alone, forecast.vocab_sizes)
    assert family_of(forecast.spec) != family_of(alone)
