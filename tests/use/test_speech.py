"""Transcripts and trees of commands equal those of the workflow, for audio of any rate and for any words."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
from finished_project import finished_project
from real_project import real_project

import reprise as api
from pipeline.core.artifacts import Prepared, RunId, Score, Transcript
from pipeline.core.errors import UserError
from pipeline.data.batches.speech_batches import SpeechSplit
from pipeline.data.speech.manifest import read_manifest
from pipeline.data.trees.linearisation import rebuild
from pipeline.data.trees.trees import parse_tree, words
from pipeline.papers.project import load_project
from reprise.__main__ import main as reprise
from reprise.find_runs import resolve_run
from reprise.model_input import Preparation, features, resample

pytestmark = pytest.mark.slow

RUNS = ["coldfusion/attention-source/source", "coldfusion/CF4/source"]
"""A recogniser alone, and one fused with a language model of another run."""
SMOKE = ["--set", "scale=smoke"]
CORPUS = "grammar-smoke-speech-source"
PARSER = "attention/parsing/wsj"
TREES = Score(RunId("attention", "parsing", "grammar-smoke-trees", 1), "scores", "parsing", "test")
"""The parses of PARSER at this scale."""


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    project = real_project({"scale": "smoke"})
    transcripts = [Transcript(resolve_run(project, run), "final", "test", CORPUS) for run in RUNS]
    return finished_project(tmp_path_factory, [TREES, *transcripts], kept="coldfusion/attention-source")


@pytest.fixture(autouse=True)
def here(root, monkeypatch):
    monkeypatch.chdir(root)


def recordings() -> list[Path]:
    (manifest,) = Path("work/corpora").glob(f"{CORPUS}*/manifests/test.tsv")
    return [utterance.audio for utterance in read_manifest(manifest)]


@pytest.mark.parametrize("run", RUNS)
def test_run_and_packed_model_transcribe_like_the_workflow(run, tmp_path, capsys):
    place = f"runs/{run.removesuffix('/source')}/*/*/transcripts/final/test@{CORPUS}.txt"
    (workflow,) = Path("work/smoke").glob(place)
    audio = [str(path.resolve()) for path in recordings()[:4]]
    assert reprise(["transcribe", run, *SMOKE, *audio]) == 0
    lines = workflow.read_text().splitlines(keepends=True)
    assert len({*lines[:4]}) > 1, "a model that ignores its input shows nothing"
    assert capsys.readouterr().out == "".join(lines[:4])
    assert reprise(["pack", run, str(tmp_path / "model"), *SMOKE]) == 0
    shutil.copy(audio[0], tmp_path / "one.flac")
    assert reprise(["transcribe", str(tmp_path / "model"), str(tmp_path / "one.flac")]) == 0
    assert capsys.readouterr().out == lines[0]
    samples, rate = soundfile.read(audio[0])
    model = api.open_run(tmp_path / "model")
    assert model.transcribe(samples, rate) == model.transcribe(np.stack([samples, samples], 1), rate)


def test_a_recording_longer_than_the_limit_is_refused_by_name(monkeypatch, refused):
    """Memory grows with the square of its length."""
    audio = recordings()[0].resolve()
    samples, rate = soundfile.read(audio)
    model = api.open_run(RUNS[0], scale="smoke")
    monkeypatch.setattr("reprise.model.LONGEST_SOUND_S", len(samples) / rate)
    assert isinstance(model.transcribe(samples, rate), str)
    with pytest.raises(
        UserError, match=r"^the recording: .* s are more than a model reads at once .*; cut it at pauses$"
    ):
        model.transcribe(np.append(samples, 0.0), rate)
    monkeypatch.setattr("reprise.model.LONGEST_SOUND_S", 0.9 * len(samples) / rate)
    assert f"{audio}: " in refused("transcribe", RUNS[0], *SMOKE, audio)


def test_ngram_decoding_works_for_a_run_but_is_not_packed(tmp_path, refused):
    run, audio, model = RUNS[0], str(recordings()[0].resolve()), tmp_path / "model"
    counted = ["--decoding", "ngram_order=2,lm_weight=0.5"]
    assert reprise(["transcribe", run, *SMOKE, *counted, audio]) == 0
    assert "isn't packed" in refused("pack", run, model, *SMOKE, *counted) and not model.exists()
    assert reprise(["pack", run, str(model), *SMOKE]) == 0
    assert "a packed model has no text to count n-grams in" in refused("transcribe", model, *counted, audio)


def test_a_file_gives_the_features_that_the_corpus_has():
    (encoded,) = Path("work/corpora").glob(f"{CORPUS}*/encoded")
    split = SpeechSplit(encoded, "test")
    for place, path in enumerate(recordings()):
        samples, rate = soundfile.read(path, dtype="float32")
        assert (features("x", samples, rate, 22050, 7600.0) == split.src[place]).all()


@pytest.mark.parametrize("rate", [16000, 44100, 48000])
def test_another_rate_keeps_what_both_can_hold(rate):
    """A tone of 1 kHz at two rates has the same samples, except at its ends."""
    tone = [np.sin(2 * np.pi * 1000 * np.arange(int(own_rate * 0.37)) / own_rate) for own_rate in (rate, 22050)]
    found = resample(tone[0], rate, 22050)
    assert len(found) == pytest.approx(len(tone[1]), abs=1)
    middle = slice(500, min(map(len, (found, tone[1]))) - 500)
    assert found[middle] == pytest.approx(tone[1][middle], abs=0.01)


@pytest.mark.parametrize(
    ("samples", "rate", "fault"),
    [
        ([], 16000, "too short"),
        ([0.0] * 100, 16000, "too short"),
        ([float("nan")] * 16000, 16000, "far beyond ±1"),
        ([1e9] * 16000, 16000, "far beyond ±1"),
        ([[[0.0]]], 16000, r"give \(n,\)"),
        ([[0.0] * 16000] * 2, 16000, r"samples of shape \(2, 16000\) at 16000 Hz; give \(n,\)"),
    ],
)
def test_file_that_is_not_audio_is_refused_by_name(samples, rate, fault):
    with pytest.raises(UserError, match=f"mine: .*{fault}"):
        features("mine", np.array(samples, np.float32), rate, 16000, 7600.0)


TAGS = "(S (NP NN NN NN NN /NP . /S"


def test_rebuilt_tree_escapes_brackets_among_the_words():
    sentence = "two ( or a(b) ) ."
    tokens = Preparation(form="trees", src="en", tgt="brackets").tokens(sentence)
    written = str(rebuild(TAGS.split(), tokens.split(" "))[0])
    assert words(parse_tree(written, "the output")) == ["two", "-LRB-", "or", "a-LRB-b-RRB-", "-RRB-", "."]


def test_sentences_as_treebanks_write_them_stay_as_they_are():
    sentence = "-LRB- it 's 1\\/2 [ of ] { all } -RRB- ."
    assert Preparation(form="trees", src="en", tgt="brackets").tokens(sentence) == sentence


def test_the_command_writes_the_trees_that_the_workflow_scored(tmp_path, capsys):
    project = load_project(Path(), {"scale": "smoke"})
    tokens = str(project.layout.path(Prepared("grammar-smoke-trees")).with_name("test.tok.en"))
    assert reprise(["parse", PARSER, tokens, *SMOKE]) == 0
    trees = capsys.readouterr().out
    assert trees == Path(project.layout.trees(TREES)).read_text() and trees.count("\n") > 10
    assert reprise(["score", PARSER, *SMOKE]) == 0
    metrics = json.loads(project.layout.path(TREES).read_text())["metrics"]
    for line in filter(str.strip, capsys.readouterr().out.splitlines()):
        assert float(line.split()[1]) == pytest.approx(metrics[line.split()[0]]["value"], abs=0.006)
    assert reprise(["pack", PARSER, str(tmp_path / "packed"), *SMOKE]) == 0
    (tmp_path / "first.txt").write_text("".join(Path(tokens).read_text().splitlines(keepends=True)[:5]))
    assert reprise(["parse", str(tmp_path / "packed"), str(tmp_path / "first.txt")]) == 0
    assert capsys.readouterr().out == "".join(trees.splitlines(keepends=True)[:5])
