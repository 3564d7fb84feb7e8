"""Files of a training and of a speech corpus against their digests, and scales that a command does not check."""

import random
from pathlib import Path

import pytest
from made_records import trained_run
from real_project import real_project

from pipeline.config.training import TrainingConfig
from pipeline.core.artifacts import Encoded
from pipeline.core.digests import recording_digests, write_note
from pipeline.core.errors import command_advice
from pipeline.core.files import atomic_write
from pipeline.core.provenance import ROOT
from pipeline.core.records.training import BestLoss, Outcome, RollBack
from pipeline.data.fetch.raw_text import write_raw_mark
from pipeline.papers.project import load_project
from pipeline.training.state import TrainingState
from pipeline.training.tensor_file import write_tensor_file
from pipeline.workflow.graph import Graph
from pipeline.workflow.targets import reprise_command, snakemake_command
from reprise.__main__ import main
from reprise.artifact_checks import FileCheck, Finding, Inspection
from reprise.cli.verify import Repairs
from reprise.training_files import weights_due

TRAINING = TrainingConfig(max_steps=100, checkpoint_every=10, validate_every=10, tokens_per_update=100, warmup_steps=1)


def resume(folder: Path, step: int, **known) -> Path:
    path = folder / "checkpoints" / f"step-{step}.resume.safetensors"
    path.parent.mkdir(exist_ok=True)
    state = TrainingState(step=step, **known).as_dict()
    write_tensor_file(path, {}, {"key": "k", "step": step, "state": state})
    return path


@pytest.mark.parametrize(
    ("steps", "last", "known", "due"),
    [
        *(([], 3, {}, []), ([70], 3, {}, []), ([80], 3, {}, [80]), ([90], 3, {}, [80, 90])),
        ([70, 90], 3, {}, []),  # the resume file of step 90 is not whole
        ([90], 4, {"returned": RollBack(at=85, to=60)}, [50, 60, 90]),
    ],
)
def test_due_weights_of_interrupted_training_end_at_resume_step(steps, last, known, due, tmp_path):
    good = [resume(tmp_path, step, **known) for step in steps][:1]
    assert weights_due(TRAINING, tmp_path, last, good, is_over=False) == due
    assert weights_due(TRAINING, tmp_path, 2, [], is_over=True) == [90, 100]


def test_a_training_that_ended_early_is_judged_by_its_own_end(tmp_path):
    """The training ran out of patience, by its final weights or, if they are lost, by its resume file."""
    patient = TRAINING.model_copy(update={"patience": 2})
    best = BestLoss(step=40, nll_per_token=1.0, perplexity=2.7, tokens=9)
    good = resume(tmp_path, 60, best_dev=best)
    assert weights_due(patient, tmp_path, 3, [good], is_over=False) == [40, 50, 60]
    assert weights_due(TRAINING, tmp_path, 3, [good], is_over=False) == []
    ended = trained_run(steps=60).model_dump(include=set(Outcome.model_fields))
    write_tensor_file(tmp_path / "model.safetensors", {}, {"key": "k", "step": 60, "record": ended})
    assert weights_due(patient, tmp_path, 3, [], is_over=True) == [40, 50, 60]


DATASET = "grammar-smoke-speech-source"
FILES = [f"prepared/{name}" for name in ("test.en", "test.speakers", "train.en", "report.json")]
FILES += [f"encoded/{name}" for name in ("corpus.json", "test.frames")] + ["manifests/test.tsv", "spoken.json"]


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """Return the folder of a speech corpus with a noted file of each kind, and a function that inspects it."""
    monkeypatch.chdir(tmp_path)
    graph = Graph(load_project(ROOT, {"scale": "smoke", "work": "work"}))
    folder = graph.project.layout.corpus(DATASET)

    def wrong():
        found = Inspection(graph, [Encoded(DATASET)]).found.values()
        return {check.path.relative_to(folder): check.state for finding in found for check in finding.checks}

    with recording_digests():
        with atomic_write(folder / "raw/test.en") as file:
            file.write("a\n")
        write_raw_mark(folder)
    for name in FILES:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text('"a"')
        write_note(folder / name)
    return folder, lambda: {str(path): state for path, state in wrong().items() if state != "good"}


def test_damaged_text_beside_speech_is_found(corpus):
    folder, wrong = corpus
    before = wrong()  # files of no more than one word are not those records that they stand for
    assert not {name for name in before if name.startswith("prepared/") and name != "prepared/report.json"}
    name = random.choice(["prepared/test.en", "prepared/test.speakers", "prepared/train.en"])
    (folder / name).write_text("b")
    assert wrong() == before | {name: "damaged"}


def test_freed_training_text_of_speech_is_not_missed(corpus):
    folder, wrong = corpus
    before = wrong()
    (folder / "prepared/train.en").unlink()
    assert wrong() == before
    (folder / "prepared/test.en").unlink()
    assert wrong() == before | {"prepared/test.en": "missing"}


def test_lost_raw_file_without_note_is_missed(corpus):
    folder, wrong = corpus
    before = wrong()
    (folder / "raw/test.en").unlink()
    (folder / "raw/.digests/test.en").unlink()
    assert wrong() == before | {"raw/test.en": "missing"}


def test_a_file_of_two_artifacts_is_set_aside_once(tmp_path, monkeypatch):
    monkeypatch.setattr(Repairs, "restore", lambda *_: False)
    path, repairs = tmp_path / "outputs.json.part", Repairs()
    path.write_text("damaged")
    findings = [Finding(None, [FileCheck(path, "damaged", 0, "cut")]) for _ in range(2)]
    repairs.repair(None, findings[0])
    path.write_text("written again")
    repairs.repair(None, findings[1])
    assert path.read_text() == "written again"
    assert [aside.read_text() for aside in repairs.asides.values()] == ["damaged"]


@pytest.fixture
def work(tmp_path, loaded_once):
    """Return a work folder with runs at two scales."""
    for scale in ("smoke", "paper"):
        (tmp_path / scale / "runs/weighted/C/toy/seed1-12345678").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize("stage", ["verify", "free"])
def test_other_scales_with_runs_are_named_with_their_command(stage, work, capfd, caplog):
    caplog.set_level("INFO")
    assert main([stage, "--root", str(ROOT), "--set", f"work={work}"]) == 0
    said = capfd.readouterr().out + caplog.text
    for scale in ("smoke", "paper"):
        command = f"`reprise {stage} --set scale={scale} --set work={work}`"
        assert f"scale {scale} also has runs in {work}, which were not checked: run {command}" in said


def test_the_scale_that_was_read_is_not_named_as_unchecked(work, capfd):
    assert main(["free", "--root", str(ROOT), "--set", f"work={work}", "--set", "scale=smoke"]) == 0
    said = capfd.readouterr().out
    assert "scale smoke also" not in said and "scale paper also has runs" in said


def test_command_includes_settings_that_differ_from_config_yaml(tmp_path):
    assert reprise_command(real_project(), "free") == "reprise free"
    project = real_project({"scale": "smoke", "seeds": [1, 7]})
    assert reprise_command(project, "free") == "reprise free --set scale=smoke --set 'seeds=[1, 7]'"
    assert reprise_command(project, "free", scale="demo") == "reprise free --set 'seeds=[1, 7]'"


def test_command_masks_secrets_in_the_address_of_a_mirror():
    project = real_project({"mirror": "https://me:s3cret@host/data?token=Zx9"})
    command = snakemake_command(project, "plan")
    assert command == """snakemake --config 'mirror="https://…@host/data?token=…"' -- plan"""


def test_command_omits_folders_that_config_yaml_has(tmp_path, monkeypatch):
    monkeypatch.setenv("MIRROR_PASSWORD", "s3cret")
    monkeypatch.setenv("HOME", str(tmp_path))
    config = {
        "mirror": "https://me:$MIRROR_PASSWORD@host/data",
        "work": "~/work",
        "licensed": {"LDC99T42": "$HOME/treebank"},
    }
    monkeypatch.setattr("pipeline.workflow.targets.load_yaml", lambda _: config)
    filled = {
        "mirror": "https://me:s3cret@host/data",
        "work": f"{tmp_path}/work",
        "licensed": {"LDC99T42": f"{tmp_path}/treebank"},
    }
    assert reprise_command(real_project(filled), "free") == "reprise free"


def test_stage_advises_commands_with_its_workflow_settings(monkeypatch):
    monkeypatch.delenv("REPRISE_SETTINGS", raising=False)
    assert command_advice("free") == "`reprise free` (with --set for each --config)"
    for settings in ("", " --set scale=smoke"):
        monkeypatch.setenv("REPRISE_SETTINGS", settings)
        assert command_advice("free") == f"`reprise free{settings}`"
