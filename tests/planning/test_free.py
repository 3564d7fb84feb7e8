"""Only what finished work no longer needs may go, and only on request."""

import fcntl

import pytest
from fabricated import touch
from made_records import decoded, trained_run
from real_project import project_at

from pipeline.core.artifacts import Averaged, Claims, Encoded, Prepared, RunArtifact, RunId, Trained, Translation
from pipeline.core.digests import sha256_file, write_note
from pipeline.core.provenance import ROOT
from pipeline.workflow.graph import Graph
from reprise.__main__ import main
from reprise.artifact_checks import Inspection
from reprise.cli.free import unneeded

RUN = RunId("attention", "base", "grammar-smoke-en-de", 1)


@pytest.fixture
def work(tmp_path):
    """A work folder with one run that is finished and scored, and its checkpoints."""
    finish(project_at(tmp_path), RUN)
    touch(run_folder(tmp_path) / "averaged/averaged.safetensors")
    return tmp_path


def finish(project, run):
    """Write all that is made of a run, and its checkpoints."""
    graph, folder = Graph(project), project.layout.run(run)
    for artifact in graph.closure(graph.reports(project.papers)):
        if isinstance(artifact, RunArtifact) and artifact.run == run:
            touch(project.layout.path(artifact))
    for name in ("step-10.safetensors", "step-20.safetensors", "step-20.resume.safetensors"):
        touch(folder / "checkpoints" / name, "weights")
    touch(folder / "model.safetensors", "final weights")
    trained_run(weights_digest=sha256_file(folder / "model.safetensors")).write(folder / "done.json")


def run_folder(work):
    return project_at(work).layout.run(RUN)


def corpus_folder(work, name):
    return project_at(work).layout.corpus(name)


def found(work, kind, scale="smoke", **config):
    items = unneeded(Graph(project_at(work, scale=scale, **config)))
    return [path for item in items if item.kind == kind for path in item.files]


def free(work, *kinds):
    settings = ["--set", "scale=smoke", "--set", f"work={work}", "--set", "seeds=1"]
    assert main(["free", "--root", str(ROOT), *settings, *(("--remove", *kinds) if kinds else ())]) == 0


def files(work):
    return {str(path.relative_to(work)) for path in work.rglob("*") if path.is_file()}


def freed(work, *kinds):
    """Free kinds of files, and return the names of those that are gone."""
    before = files(work)
    free(work, *kinds)
    return {name.rpartition("/")[2] for name in before - files(work)}


def test_checkpoints_of_a_scored_run_may_go_and_its_weights_stay(work):
    assert freed(work) == set()
    gone = {"step-10.safetensors", "step-20.safetensors", "step-20.resume.safetensors"}
    assert freed(work, "checkpoints") == gone


@pytest.mark.parametrize("harm", ["done.json", "model.safetensors", "a score", "another model"])
def test_a_run_that_is_not_finished_or_changed_is_left_alone(work, harm):
    folder = run_folder(work)
    if harm == "another model":
        touch(folder / "model.safetensors", "damaged")
    else:
        (next(folder.glob("scores/*/*.json")) if harm == "a score" else folder / harm).unlink()
    assert not found(work, "checkpoints")


@pytest.mark.parametrize(("more", "count"), [(0, 3), (1, 0)])
def test_checkpoints_stay_until_a_changed_decoding_is_made(work, more, count):
    """It may average other checkpoints, which only a new training would write."""
    project = project_at(work)
    settings = project.decoding(RUN.paper, RUN.system, "averaged").model_dump(mode="json")
    record = decoded(decoding=settings | {"average_last": settings["average_last"] + more})
    record.write(project.layout.path(Translation(RUN, "averaged", "test")).with_suffix(".json"))
    assert len(found(work, "checkpoints")) == count


@pytest.mark.parametrize("name", ["seed1.before-0123abcd", "seed1-0123abcd", "seed1", "seed2-0123abcd"])
def test_free_offers_runs_of_earlier_settings(work, name):
    old = run_folder(work).with_name(name)
    touch(old / "model.safetensors")
    touch(old / "checkpoints/step-1.safetensors")
    assert freed(work, "old-runs") == {"model.safetensors", "step-1.safetensors"}
    assert not old.exists() and run_folder(work).exists()


def test_free_removes_unfinished_old_runs_only_on_request(work, capsys):
    touch(run_folder(work).with_name("seed1-0123abcd") / "checkpoints/step-1.resume.safetensors")
    touch(run_folder(work).with_name("seed2-0123abcd") / "progress.jsonl")
    assert not found(work, "old-runs") and len(found(work, "unfinished")) == 2
    before = files(work)
    free(work)
    lines = capsys.readouterr().out.splitlines()
    (hint,) = (line for line in lines if "to remove it" in line)
    command, _, kinds = hint.rpartition(" --remove ")
    assert command.endswith(f"`reprise free --set scale=smoke --set work={work}")
    assert "checkpoints" in kinds and "unfinished" not in kinds
    assert "unfinished: 0 B can be removed" not in lines and any("checkpoints: " in line for line in lines)
    free(work, "old-runs", "checkpoints", "text", "audio", "old-corpora", "downloads")
    assert any("seed1-0123abcd" in name for name in files(work))
    free(work, "unfinished")
    assert {name for name in before - files(work) if "0123abcd" in name} and not found(work, "unfinished")


def test_a_corpus_of_what_a_dataset_was_before_may_go(work):
    corpus = corpus_folder(work, "grammar-smoke-en-de")
    for folder in (corpus, old := corpus.with_name("grammar-smoke-en-de-0123abcd")):
        touch(folder / "raw.done")
    assert found(work, "old-corpora") == [old / "raw.done"]


def test_each_run_is_listed_with_the_reports_that_read_it(work, capsys):
    touch(run_folder(work).with_name("seed1-0123abcd") / "model.safetensors")
    free(work)
    lines = capsys.readouterr().out.splitlines()
    (checkpoints,) = (line for line in lines if "checkpoints: 3 files" in line)
    (old,) = (line for line in lines if "old-runs: 1 file," in line)
    assert "attention/table3.csv" in checkpoints and "weighted/table2.csv" in checkpoints
    assert "multichannel/table4" not in checkpoints and "no report of the current settings" in old


def test_a_run_that_a_process_holds_is_left_alone(work):
    touch(run_folder(work) / "run.lock")
    assert found(work, "checkpoints")
    with open(run_folder(work) / "run.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert not found(work, "checkpoints")


def test_free_removes_encoded_training_text_and_keeps_test_text(work):
    corpus = corpus_folder(work, "grammar-smoke-en-de")
    for name in ("raw/train.en", "raw/dev.en", "prepared/train.tok.de", "prepared/test.de", "raw.done"):
        touch(corpus / name)
    assert not found(work, "text")
    touch(corpus / "encoded/corpus.json")
    free(work, "text")
    left = {str(path.relative_to(corpus)) for path in corpus.rglob("*") if path.is_file()}
    assert left == {"raw/dev.en", "prepared/test.de", "encoded/corpus.json"}


@pytest.mark.parametrize("name", ["grammar-smoke-trees", "grammar-smoke-en-de"])
def test_verify_misses_training_text_that_free_keeps(name, tmp_path):
    """Words and tags of training trees, by which parses are scored; of parallel text nothing."""
    corpus = corpus_folder(tmp_path, name)
    touch(corpus / "prepared/report.json")
    touch(corpus / "encoded/corpus.json")
    texts = [corpus / "prepared" / name for name in ("train.en", "train.tok.en", "train.tok.brackets", "dev.en")]
    for path in texts:
        touch(path)
        write_note(path)
    offered = found(tmp_path, "text")
    for path in texts:
        path.unlink()
    checks = Inspection(Graph(project_at(tmp_path)), {Encoded(name)}).checks(Prepared(name))
    missed = {check.path.name for check in checks if check.state == "missing"}
    assert missed == {path.name for path in texts} - {path.name for path in offered}
    assert ("train.tok.en" in missed) == (name == "grammar-smoke-trees") and "dev.en" in missed


def downloads(work, scale, **config):
    return {path.name for path in found(work, "downloads", scale, **config)}


def test_a_download_stays_until_all_its_datasets_are_extracted(tmp_path):
    touch(tmp_path / "downloads/training-parallel-nc-v9.tgz")  # of both language pairs
    touch(tmp_path / "downloads/training-parallel-un.tgz")  # of English-French alone, in both vocabularies
    touch(tmp_path / "downloads/unknown.tgz")
    assert downloads(tmp_path, "paper") == set()
    touch(corpus_folder(tmp_path, "wmt14-en-fr") / "raw.done")
    assert downloads(tmp_path, "paper") == set()
    touch(corpus_folder(tmp_path, "wmt14-en-fr-40k") / "raw.done")
    assert downloads(tmp_path, "paper") == {"training-parallel-un.tgz"}
    touch(corpus_folder(tmp_path, "wmt14-en-de") / "encoded/corpus.json")
    assert downloads(tmp_path, "paper") == {"training-parallel-un.tgz", "training-parallel-nc-v9.tgz"}


def test_free_keeps_downloads_that_a_dataset_still_needs(tmp_path):
    """It is read by the dataset that stands in at this scale, and by four of the anchors'."""
    touch(tmp_path / "downloads/fsdd.tar.gz")
    touch(corpus_folder(tmp_path, "fsdd") / "raw.done")
    mirror = {"mirror": "https://mirror.org"}
    assert downloads(tmp_path, "small", **mirror) == set()
    for speaker in ("lucas", "nicolas", "theo", "yweweler"):
        touch(corpus_folder(tmp_path, f"fsdd-without-{speaker}") / "raw.done")
    assert downloads(tmp_path, "small", **mirror) == {"fsdd.tar.gz"}
    assert downloads(tmp_path, "small") == set(), "no address has it: the user brought it"


def test_free_removes_text_and_audio_that_share_a_marker(tmp_path):
    folder = corpus_folder(tmp_path, "grammar-smoke-speech-source")
    for name in ("raw.done", "raw/train.txt", "prepared/train.txt", "audio/train/000000.flac", "encoded/corpus.json"):
        touch(folder / name)
    free(tmp_path, "text", "audio")
    assert not (folder / "raw.done").exists() and not list((folder / "audio").rglob("*.flac"))


def test_audio_may_go_once_it_is_features(tmp_path):
    folder = corpus_folder(tmp_path, "grammar-smoke-speech-source")
    touch(folder / "audio/train/000000.flac")
    touch(folder / "spoken.json")
    assert not found(tmp_path, "audio")
    touch(folder / "encoded/corpus.json")
    assert [path.name for path in found(tmp_path, "audio")] == ["spoken.json", "000000.flac"]


def test_checkpoints_that_only_claims_still_need_are_kept(work):
    """Their scores are not written yet; every table's are."""
    project = project_at(work)
    graph = Graph(project)
    claims = [Claims(paper) for paper in project.papers]
    reports = [report for report in graph.reports(project.papers) if report not in claims]
    shown, judged = (
        {artifact for artifact in graph.closure(some) if isinstance(artifact, RunArtifact)}
        for some in (reports, claims)
    )
    alone = min(judged - shown, key=str)
    finish(project, alone.run)
    checkpoint = project.layout.run(alone.run) / "checkpoints/step-10.safetensors"
    assert checkpoint in found(work, "checkpoints")
    project.layout.path(alone).unlink()
    assert checkpoint not in found(work, "checkpoints")


def on_request(work):
    """Return artifacts of runs: of the usual reports, and of tables on request alone."""
    graph = Graph(project_at(work, scale="small"))
    usual = set(graph.closure(graph.reports(graph.project.papers)))
    tables = {*graph.on_request}
    return [
        {artifact for artifact in artifacts if isinstance(artifact, RunArtifact)}
        for artifacts in (usual, {*graph.closure(tables)} - usual)
    ]


def test_checkpoints_that_a_table_on_request_averages_are_kept(tmp_path):
    """Its other artifacts need final or averaged weights, which stay."""
    project, (usual, alone) = project_at(tmp_path, scale="small"), on_request(tmp_path)
    (averaged,) = (one for one in alone if isinstance(one, Averaged) and one.run in {other.run for other in usual})
    finish(project, averaged.run)
    assert found(tmp_path, "checkpoints", "small") == []
    touch(project.layout.path(averaged))
    assert len(found(tmp_path, "checkpoints", "small")) == 3


def test_checkpoints_of_a_scored_run_on_request_may_go(tmp_path):
    project, (usual, alone) = project_at(tmp_path, scale="small"), on_request(tmp_path)
    run = min({artifact.run for artifact in alone} - {artifact.run for artifact in usual}, key=str)
    finish(project, run)
    artifacts = sorted((artifact for artifact in alone if artifact.run == run), key=str)
    for artifact in artifacts:
        assert found(tmp_path, "checkpoints", "small") == []
        if not isinstance(artifact, Trained):
            touch(project.layout.path(artifact))
    assert len(found(tmp_path, "checkpoints", "small")) == 3
