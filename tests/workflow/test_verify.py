"""If any file of a finished target is lost or damaged, `verify --repair` and the same command restore everything."""

import os
import random
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from copied_project import call, jobs, require
from finished_project import finished_project, shrunk_layout

from pipeline.core.artifacts import Figure, RunId, Score
from pipeline.core.files import note_path
from pipeline.papers.project import load_project
from pipeline.workflow.graph import Graph
from pipeline.workflow.runs import Runs
from reprise.artifact_checks import Inspection
from reprise.cli.verify import resolve

LAYOUT = shrunk_layout()
TRAINING = RunId("attention", "base", "grammar-smoke-en-de", 1)
RUN = str(LAYOUT.run(TRAINING))
CORPUS = str(LAYOUT.corpus("grammar-smoke-en-de"))
ARTIFACTS = [Figure("attention", "figure3"), Score(TRAINING, "scores", "averaged", "test")]
TARGETS = ["results/smoke/attention/figure3.svg", f"{RUN}/averaged/scores.json"]
COMPARED = [*TARGETS, f"{RUN}/scores/averaged/test.json"]
KINDS = {
    "raw text": f"{CORPUS}/raw/*",
    "facts": f"{CORPUS}/*.phenomena.jsonl",
    "prepared text": f"{CORPUS}/prepared/*",
    "vocabulary": f"{CORPUS}/subwords*",
    "tokens": f"{CORPUS}/encoded/*",
    "specification": f"{RUN}/run.yaml",
    "training's record": f"{RUN}/done.json",
    "final weights": f"{RUN}/model.safetensors",
    "checkpoints": f"{RUN}/checkpoints/*",
    "averaged weights": f"{RUN}/averaged/averaged.*",
    "manifests": f"{RUN}/averaged/[os]*s.json",
    "translations": f"{RUN}/translations/averaged/*",
    "scores": f"{RUN}/scores/averaged/test.*",
    "attention": f"{RUN}/attention/*/*-distant.json",
    "figure": "results/smoke/attention/figure3.*",
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    return finished_project(tmp_path_factory, ARTIFACTS)


@pytest.fixture
def project(finished, tmp_path, monkeypatch) -> Path:
    """A copy, with the times of its files."""
    folder = tmp_path / "project"
    shutil.copytree(finished, folder, symlinks=True)
    monkeypatch.chdir(folder)
    return folder


def planned_jobs(folder: Path) -> dict[str, int]:
    return jobs(require(call(folder, "snakemake", "-n", "--config", "scale=smoke", "--", *TARGETS)))


@pytest.fixture
def graph(project) -> Graph:
    return Graph(load_project(project, {"scale": "smoke"}))


@pytest.fixture
def inspect(graph) -> Callable[[], Inspection]:
    """Return a function that inspects the targets."""
    targets = resolve(graph, TARGETS)
    return lambda: Inspection(graph, *targets)


def wrong_files(inspection: Inspection) -> dict[Path, str]:
    """Return the states of the files that are not good."""
    checks = (check for finding in inspection.found.values() for check in finding.checks)
    return {check.path: check.state for check in checks if check.state != "good"}


def verify(folder: Path, *more: str, of: Iterable[str] = TARGETS):
    return call(folder, "reprise", "verify", *more, "--set", "scale=smoke", "--", *of)


def contents(folder: Path) -> dict[str, bytes]:
    found = [path for target in COMPARED for path in (folder / target).parent.glob(f"{Path(target).stem}.*")]
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in found if path.suffix[1:] in "csv json md npz svg"
    }


def spoil(path: Path) -> str:
    """Delete the file, cut it off, or change some bytes."""
    content = bytearray(path.read_bytes())
    fault = random.choice(["deleted", "cut off", "changed", "zeroed"])
    if fault == "deleted" or not content:
        path.unlink()
        return "deleted"
    if fault == "cut off":
        content = content[: random.randrange(len(content))]
    else:
        place = random.randrange(len(content))
        content[place] = content[place] ^ 1 << random.randrange(8) if fault == "changed" or not content[place] else 0
    path.write_bytes(content)
    return fault


def remove_what_is_made_of_weights(project: Path) -> None:
    decodings = [path.parent for path in (project / RUN).glob("*/outputs.json*")]
    for folder in {*decodings, *(project / RUN / name for name in ("averaged", "translations", "scores", "attention"))}:
        shutil.rmtree(folder)


def check_rebuilt(project: Path, before: dict[str, bytes], fault: object = None) -> None:
    """Check that the same command restores every report to its old content."""
    require(call(project, "snakemake", "--cores", "1", "--config", "scale=smoke", "--", *TARGETS))
    require(verify(project))
    assert contents(project) == before, fault


def any_file(project: Path, kind: str) -> Path:
    found = (path for path in sorted(project.glob(KINDS[kind])) if path.is_file())
    return random.choice([path for path in found if not path.name.startswith(".")])  # those are notes of what was seen


def test_verify_finds_and_names_any_single_changed_file(project, inspect):
    assert not wrong_files(inspect())
    for kind in KINDS:
        path = any_file(project, kind)
        kept = path.read_bytes()
        fault = spoil(path)
        found = wrong_files(inspect())
        freed = kind == "checkpoints" or (kind == "prepared text" and path.name.startswith("train."))
        if freed and fault == "deleted":
            assert not found, "what `free` removes is missed only by what needs it"
        else:
            assert found[path.relative_to(project)] == ("missing" if fault == "deleted" else "damaged"), (path, fault)
        path.write_bytes(kept)
    assert not wrong_files(inspect())


def test_verify_looks_at_every_noted_file(graph):
    found = Inspection(graph, [], graph.readable(graph.project.papers)).found.values()
    checked = {check.path for finding in found for check in finding.checks}
    notes = [path for top in ("work", "results") for path in Path(top).rglob(".digests/*")]
    noted = {path.parent.parent / path.name for path in notes if path.parents[2].name != "jobs"}
    assert len(noted) > 40 and noted <= checked


@pytest.mark.parametrize(
    "fixed",
    [
        [],
        [f"{CORPUS}/encoded/corpus.json", f"{RUN}/done.json"],
        [f"{CORPUS}/encoded/dev.src.offsets", f"{RUN}/scores/averaged/test.npz"],  # scored while the corpus is missing
    ],
    ids=["random", "records", "corpus and score"],
)
def test_damaged_notes_are_named_and_mended(fixed, project):
    before, notes = contents(project), [*Path("work").rglob(".digests/*")]
    chosen = [note_path(Path(name)) for name in fixed] or random.sample(notes, 9)
    spoilt = {path: random.choice([b"", path.read_bytes()[:-1], b"\xff" * 65]) for path in chosen}
    for path, content in spoilt.items():
        path.write_bytes(content)
    report = verify(project, of=[])  # a run is decoded for all reports that read it
    assert report.returncode == 1 and "Traceback" not in report.stderr
    assert all(str(path) in report.stdout for path in spoilt)
    require(verify(project, "--repair", of=[]))
    check_rebuilt(project, before, spoilt)


def test_copy_without_times_leaves_nothing_to_do(finished, tmp_path):
    folder = tmp_path / "copied"
    shutil.copytree(finished, folder, symlinks=True, copy_function=shutil.copy)
    shutil.rmtree(folder / ".snakemake")  # its records know only the paths of the original
    files = [path for top in ("work", "results") for path in (folder / top).rglob("*") if path.is_file()]
    made, copied = max(path.stat().st_mtime for path in finished.rglob("*") if path.is_file()), time.time()
    for path in files:
        os.utime(path, (random.uniform(made, copied),) * 2)
    assert planned_jobs(folder) == {}
    with open(folder / CORPUS / "subwords.model", "ab") as file:
        file.write(b"x")
    assert {"encode", "train"} <= planned_jobs(folder).keys()


@pytest.mark.parametrize(
    "file", ["subwords.model", "*.tokens", "*.offsets", "model.safetensors", "step-*", "averaged.s*"]
)
def test_verify_finds_damage_by_recorded_digests_without_notes(file, project, inspect):
    for notes in project.rglob(".digests"):
        shutil.rmtree(notes)
    path = random.choice(sorted(path for folder in (RUN, CORPUS) for path in (project / folder).rglob(file)))
    content = bytearray(path.read_bytes())
    content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(content)
    assert wrong_files(inspect())[path.relative_to(project)] == "damaged"


def test_repair_of_one_file_of_every_kind_removes_nothing(project):
    before = contents(project)
    spoilt = {path: spoil(path) for path in {any_file(project, kind) for kind in KINDS}}
    report = verify(project)
    assert report.returncode == 1 and "Traceback" not in report.stderr
    assert report.stderr.splitlines()[-1].startswith("error: ")
    present = {path for path in project.rglob("*") if path.is_file() and ".digests" not in path.parts}
    require(verify(project, "--repair"))
    for path in present:
        reopened = path.with_name(f"{path.name}.part")
        assert path.exists() or reopened.exists() or list(path.parent.glob(f"{path.name}.damaged*"))
    check_rebuilt(project, before, spoilt)


@pytest.mark.parametrize("lost", [["done.json"], ["done.json", "model.safetensors"]], ids=" ".join)
def test_lost_checkpoint_of_a_finished_training_is_retrained(lost, project):
    before = contents(project)
    last = sorted((project / RUN / "checkpoints").glob("step-?.safetensors"))
    for path in (last[-2], *(project / RUN / name for name in lost)):
        path.unlink()
    remove_what_is_made_of_weights(project)
    assert "restored from other files" not in require(verify(project, "--repair"))
    check_rebuilt(project, before)


@pytest.mark.slow
@pytest.mark.parametrize("name", [f"{RUN}/model.safetensors", f"{CORPUS}/subwords.model", f"{RUN}/run.yaml"])
def test_repair_names_the_command_that_rebuilds_an_unneeded_file(name, project):
    (spoilt := project / name).write_bytes((before := spoilt.read_bytes())[:-1])
    said = require(verify(project, "--repair"))
    (command,) = re.findall("run `(snakemake .*)` to rebuild what is missing", said)
    assert shlex.split(command)[shlex.split(command).index("--") + 1 :] == [f"{RUN}/done.json"]
    require(call(project, *shlex.split(command)))
    assert spoilt.read_bytes() == before and (project / RUN / "model.safetensors").exists()
    assert planned_jobs(project) == {}
    require(verify(project))


def test_repair_sets_a_checkpoint_aside_and_restores_the_record(project):
    checkpoint = next((project / RUN / "checkpoints").glob("step-?.safetensors"))
    checkpoint.write_bytes(b"damaged")
    (project / RUN / "done.json").unlink()
    said = require(verify(project, "--repair"))
    assert said.count("restored from other files") == 1 and (project / RUN / "done.json").exists()
    assert not checkpoint.exists() and checkpoint.with_name(f"{checkpoint.name}.damaged").exists()


@pytest.mark.parametrize("folder", [RUN, f"{RUN}/jobs/decode-averaged"])
def test_damaged_events_are_named_and_their_whole_lines_kept(folder, project):
    path = project / folder / "state.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(project / RUN / "state.jsonl", project / "events")
    lines = (project / "events").read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], bytes(40) + b"\n", *lines[1:]]))
    said = verify(project)
    assert said.returncode == 1 and re.search(rf"{folder}/state.jsonl +damaged .*line 2: .*--repair keeps", said.stdout)
    assert "contains the old lines" in require(verify(project, "--repair"))
    assert path.read_bytes().splitlines(keepends=True) == lines
    require(verify(project))
    assert planned_jobs(project) == {}


def test_repair_keeps_the_whole_lines_of_a_loss_curve(project):
    """Curves and checks of plateaus read it, and only a new training would write it."""
    path = project / RUN / "progress.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([bytes(40) + b"\n", *lines]))
    assert "contains the old lines" in require(verify(project, "--repair"))
    assert path.read_bytes().splitlines(keepends=True) == lines


@pytest.mark.parametrize("spoil_one", [lambda path: path.write_text("{"), Path.unlink], ids=["damaged", "deleted"])
def test_repair_rewrites_the_training_record_from_its_weights(spoil_one, project, graph):
    record = project / RUN / "done.json"
    before = record.read_bytes()
    spoil_one(record)
    spoilt = record.read_bytes() if record.exists() else None
    said = require(verify(project, "--repair"))
    assert said.count("restored from other files") == 1
    assert record.read_bytes() == before
    aside = record.with_name("done.json.damaged")
    assert (aside.read_bytes() if aside.exists() else None) == spoilt
    assert (aside.name in said) == aside.exists()
    require(verify(project))
    assert planned_jobs(project) == {}
    assert Runs(graph).state_of(TRAINING, [], driven=False).state == "done"


@pytest.mark.slow
@pytest.mark.parametrize("_", range(2))
def test_repair_of_any_file_lets_its_dependents_be_rebuilt(_, project):
    kind = random.choice([*KINDS])
    before = contents(project)
    path = any_file(project, kind)
    fault = spoil(path)
    require(verify(project, "--repair"))
    check_rebuilt(project, before, (path, fault))
    remove_what_is_made_of_weights(project)
    if kind == "checkpoints":  # now they are needed: without one of the last ones the run is trained again
        verify(project, "--repair")
    check_rebuilt(project, before, (path, fault))


@pytest.mark.parametrize("name", ["subwords.model", "subwords.json", "prepared/test.en"])
def test_a_deleted_file_is_no_fault_after_repair_unless_needed(name, project):
    (project / CORPUS / name).unlink()
    found = verify(project)
    assert found.returncode == 1 and re.search(rf"{CORPUS}/{name} .*is not there", found.stdout), found.stdout
    require(verify(project, "--repair"))
    require(verify(project))


def test_runs_that_no_report_reads_are_named_as_unchecked(project):
    assert "were not checked" not in require(verify(project, of=[]))
    shutil.copytree(project / RUN, other := (project / RUN).with_name("seed1-0123abcd"))
    said = require(verify(project, of=[]))
    assert f"runs that no report reads were not checked: 1, such as {other.relative_to(project)}" in said


def test_verify_of_a_paper_reports_damaged_and_deleted_files(project):
    require(verify(project, of=["attention"]))
    figure, scores = Path(TARGETS[0]), Path(RUN) / "scores/averaged/test.json"
    figure.unlink()
    scores.write_text("{")
    said = verify(project, of=["attention"])
    assert said.returncode == 1 and "error: 2 files of scale smoke are not good" in said.stderr
    assert all(f"{path}  " in said.stdout for path in (figure, scores))
    never = verify(project, of=["results/smoke/attention/figure4.svg"])
    assert never.returncode == 1 and "figure4.svg" in never.stdout


def test_verify_leaves_unreadable_files_and_names_them(inspect, monkeypatch):
    path = Path(RUN) / "checkpoints" / random.choice(os.listdir(Path(RUN) / "checkpoints"))
    real = open

    def refuse(file, *arguments, **settings):
        if Path(file) == path:
            raise PermissionError(13, "Permission denied", str(file))
        return real(file, *arguments, **settings)

    monkeypatch.setattr("builtins.open", refuse)
    inspection = inspect()
    assert wrong_files(inspection) == {path: "unreadable"}
    assert not any(finding.stale for finding in inspection.found.values())
