"""Errors on runs without weights, outputs or scores, and the metric that is compared by default."""

import shutil
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import yaml
from fabricated import touch
from made_records import decoded, score_file, trained_run

from pipeline.core.errors import UserError
from pipeline.core.files import note_path
from pipeline.core.layout import DONE_FILE, RUN_FILE, WEIGHTS_FILE
from pipeline.core.records.outputs import AveragedWeights, TunedWeights
from pipeline.decoding.decode_split import parse_decoding
from pipeline.papers.project import Project, load_project
from reprise.__main__ import main
from reprise.cli.score import decode_and_score, find_score, usual_metric
from reprise.find_runs import FoundRun, find_run
from reprise.opening import decoding_of

NAME, PARSING, SMOKE = "attention/base/wmt14-en-de/1", "attention/parsing/wsj/1", {"scale": "smoke"}


@pytest.fixture
def folder(root):
    """Return the folder of the run in a fresh project; it has settings and nothing else."""
    return untrained_run(load_project(root, SMOKE), NAME)


def untrained_run(project: Project, name: str) -> Path:
    run = project.runs_of(*name.split("/")[:3])[0]
    return touch(project.layout.run(run) / RUN_FILE, yaml.safe_dump(project.run_yaml(run))).parent


def message(name: str = NAME) -> str:
    with pytest.raises(UserError) as caught:
        find_run(name, SMOKE)
    return str(caught.value)


@pytest.mark.parametrize("name", [NAME, "attention/base"])
def test_untrained_run_names_the_command_of_one_training(folder, name):
    shutil.rmtree(folder)
    text = message(name)
    assert f"{name}: not trained at scale smoke" in text
    assert f"`snakemake --config scale=smoke -- {folder / DONE_FILE}` trains it" in text


def test_unfinished_run_names_the_step_that_it_resumes_from(folder):
    touch(folder / "checkpoints/step-30.safetensors")
    text = message()
    assert "not trained to the end" in text
    assert f"`snakemake --config scale=smoke -- {folder / DONE_FILE}` resumes it from step 30" in text


def test_finished_run_without_weights_names_the_repair(folder):
    (folder / DONE_FILE).touch()
    for name in (NAME, "attention/base", str(folder)):
        assert f"weights are missing; `reprise train --run {folder}` writes them again" in message(name)


def test_run_of_a_renamed_system_names_the_paper_that_lacks_it(folder):
    (folder / WEIGHTS_FILE).touch()
    spec = yaml.safe_load((folder / RUN_FILE).read_text())
    (folder / RUN_FILE).write_text(yaml.safe_dump(spec | {"system": "bases"}))
    with pytest.raises(UserError, match=r"attention/paper\.yaml lacks: unknown name 'bases'; .*did you mean 'base'"):
        decoding_of(find_run(str(folder), SMOKE), "")


def test_run_without_weights_is_found_where_none_are_needed(folder):
    with pytest.raises(UserError, match="not trained at scale smoke"):
        find_run(NAME, SMOKE, needs_weights=False)
    (folder / DONE_FILE).touch()
    for name in (NAME, str(folder)):
        assert find_run(name, SMOKE, needs_weights=False).folder.samefile(folder)


def test_system_on_no_dataset_of_a_report_is_not_called_trained(folder):
    text = message("multichannel/RNN")
    assert "multichannel/RNN: not trained at scale smoke" in text
    assert "`snakemake --config scale=smoke -- work/smoke/runs/multichannel" in text


@pytest.fixture
def found(folder) -> FoundRun:
    (folder / WEIGHTS_FILE).touch()
    return find_run(NAME, SMOKE)


def test_threads_reach_the_decoding_even_if_there_are_none(found, tmp_path, monkeypatch):
    """The decoding refuses it."""
    given = {}
    monkeypatch.setattr("pipeline.decoding.decode_split.translate", lambda **options: given.update(options))
    monkeypatch.setattr("pipeline.outputs.score_text.score_text", lambda **options: None)
    with pytest.raises(UserError, match="no such file"):
        decode_and_score(found, "final", "test", 0, tmp_path)
    assert given["threads"] == 0


DECODED = "translations/final/test.tok"


@pytest.mark.parametrize(
    ("made", "split", "decoding", "said"),
    [
        (None, "test", "", r"trained, not decoded; `snakemake .*/averaged/scores.json` decodes"),
        (DECODED, "test", "final", r"decoded, not scored; `snakemake .*/final/scores.json` scores it"),
        ("scores/final/test.json", "test", "averaged", "trained, not decoded"),
        (
            None,
            "dev",
            "averaged",
            "trained, not decoded; no report reads it; `reprise score .* --split dev --dec.* prints",
        ),
        ("scores/averaged/test.json", "dev", "averaged", "no report reads it; `--split test` is scored$"),
    ],
)
def test_missing_score_names_the_command_that_makes_it(found, made, split, decoding, said):
    """No target makes a score that no report reads, so a command of Snakemake would end well and change nothing."""
    if made:
        touch(found.folder / made)
    with pytest.raises(UserError, match=said):
        find_score(found, "sacrebleu", split, decoding)


def test_run_is_compared_by_a_decoding_that_is_scored(found, caplog):
    path = touch(found.folder / "scores/final/test.json")
    assert find_score(found, "sacrebleu", "test", "") == path
    assert "decoding 'averaged' is not scored yet; comparing 'final'" in caplog.text


@pytest.mark.parametrize(("beam", "warned"), [(4, False), (7, True)])
def test_compared_score_of_other_decoding_settings_is_named(found, caplog, beam, warned):
    touch(found.folder / "scores/final/test.json")
    output = touch(found.folder / "translations/final/test.tok")
    decoded(decoding={"beam_size": beam}).write(output.with_suffix(".json"))
    find_score(found, "sacrebleu", "test", "final")
    assert ("scores/final/test.json: was decoded with another beam_size than 'final' has now" in caplog.text) == warned


@pytest.mark.parametrize("digest", ["0", "1"])
def test_compared_score_of_an_earlier_output_is_named(found, caplog, digest):
    trained_run(weights_digest="new").write(found.folder / DONE_FILE)
    inputs = {"elsewhere/translations/final/test.tok": "0" * 64}
    scored = score_file({}, 10).model_copy(update={"training": "new", "inputs": inputs})
    scored.write(touch(found.folder / "scores/final/test.json"))
    touch(note_path(found.folder / "translations/final/test.tok"), digest * 64)
    find_score(found, "sacrebleu", "test", "final")
    assert ("its output was decoded again since" in caplog.text) == (digest == "1")


def test_score_of_an_earlier_training_is_not_compared(found):
    trained_run(weights_digest="new").write(found.folder / DONE_FILE)
    path = touch(found.folder / "scores/final/test.json")
    for training in (None, "new", "old"):
        score_file({}, 10).model_copy(update={"training": training}).write(path)
        with pytest.raises(UserError, match="scores weights of another") if training == "old" else nullcontext():
            assert find_score(found, "sacrebleu", "test", "final") == path


def test_language_model_is_not_scored_as_a_translator(root, tmp_path):
    name = "coldfusion/lm-german/wmt14-en-de"
    touch(untrained_run(load_project(root, SMOKE), name) / WEIGHTS_FILE)
    with pytest.raises(UserError, match=r"lm-german/.*: is a language model; measure it with the stage `perplexity`"):
        decode_and_score(find_run(name, SMOKE), "", "test", None, tmp_path)


@pytest.mark.parametrize(
    ("key", "first", "more", "is_redone", "is_kept"),
    [("key", 0, 0, False, True), ("key", 0, 1, True, False), ("key", 1, 0, True, True), ("old", 0, 0, True, False)],
    ids=["current", "other number", "other checkpoints", "other training"],
)
def test_average_that_is_out_of_date_is_redone(folder, found, monkeypatch, key, first, more, is_redone, is_kept):
    """Without checkpoints, one of the same number and training is kept."""
    count = found.project.decoding("attention", "base", "averaged").average_last
    path = touch(folder / "averaged/averaged.safetensors")
    steps = range(first, first + count + more)
    inputs = [{"file": f"step-{step}.safetensors", "step": step, "digest": "toy"} for step in steps]
    AveragedWeights(key=key, digest="toy", inputs=inputs).write(path.with_suffix(".json"))
    chosen = Mock(return_value=[folder / f"checkpoints/step-{step}.safetensors" for step in range(count)])
    monkeypatch.setattr("pipeline.decoding.averaging.select_checkpoints", chosen)
    monkeypatch.setattr("pipeline.decoding.averaging.write_average", written := Mock())
    monkeypatch.setattr("pipeline.training.specification.run_key", lambda folder: "key")
    assert decoding_of(found, "averaged").weights == path
    assert written.called == is_redone
    chosen.side_effect = UserError("no checkpoint")
    assert (decoding_of(found, "").weights == path) == is_kept


def test_final_weights_replace_an_average_without_checkpoints(folder, found, caplog, monkeypatch):
    missing = Mock(side_effect=UserError("no checkpoint"))
    monkeypatch.setattr("pipeline.decoding.averaging.select_checkpoints", missing)
    monkeypatch.setattr("pipeline.training.specification.run_key", lambda folder: "key")
    assert decoding_of(found, "").weights == folder / WEIGHTS_FILE
    assert "the checkpoints that 'averaged' averages are missing" in caplog.text
    with pytest.raises(UserError, match="--decoding averaged: no checkpoint, or choose another"):
        decoding_of(found, "averaged")


def test_scored_runs_are_compared_without_their_weights(root, monkeypatch):
    """Folders from other machines come without weights."""
    names = [NAME, "attention/big/wmt14-en-de/1"]
    for folder in (untrained_run(load_project(root, SMOKE), name) for name in names):
        trained_run(weights_digest="new").write(folder / DONE_FILE)
        score_file({}, 10).model_copy(update={"training": "new"}).write(touch(folder / "scores/final/test.json"))
    found = SimpleNamespace(difference=1.5, low=1, high=2, p_value=0.01)
    monkeypatch.setattr("reprise.cli.score.compare_scores", compared := Mock(return_value=found))
    assert main(["compare", *names, "--set", "scale=smoke"]) == 0
    assert [path.name for path in compared.call_args.args[:2]] == ["test.json"] * 2


def test_runs_of_two_tasks_are_not_compared(found, refused):
    (untrained_run(found.project, PARSING) / WEIGHTS_FILE).touch()
    scored = f"{NAME} is scored by bleu_paper, {PARSING} by f1; compare two runs of one task"
    assert scored in refused("compare", NAME, PARSING, "--set", "scale=smoke")


VALUE = {"value": 1.0, "low": None, "high": None, "signature": "toy"}


@pytest.mark.parametrize("metric", ["bleu_paper", "f1", "wer", "perplexity"])
def test_usual_metric_ignores_other_metrics_of_a_score_file(metric, tmp_path):
    score_file({"other": VALUE, metric: VALUE}, 10).write(tmp_path / "test.json")
    assert usual_metric(tmp_path / "test.json") == metric


def test_score_file_without_a_usual_metric_lists_its_metrics(tmp_path):
    score_file({"odd": VALUE}, 10).write(tmp_path / "test.json")
    with pytest.raises(UserError, match="choose one with --metric: odd"):
        usual_metric(tmp_path / "test.json")


def test_decoding_tuned_with_further_runs_can_be_scored(root, monkeypatch):
    """The stage that `reprise score` runs reads the settings as JSON."""
    monkeypatch.setattr("reprise.opening.averaged_weights", lambda *_: Path("averaged"))
    folder = untrained_run(load_project(root, {"scale": "small"}), "anchors/joint-an4/an4-complete")
    touch(folder / WEIGHTS_FILE)
    point = {"lm_weight": 0.5, "word_bonus": 1.0, "cer": 9.0, "wer": 9.0}
    TunedWeights(**point, sentences=9, grid=[]).write(touch(folder / "tuned/joint-lm-folds.json"))
    config = decoding_of(find_run(str(folder), {}), "joint-lm-folds").config
    assert (config.lm_weight, config.word_bonus) == (0.5, 1.0)
    assert parse_decoding(config.model_dump_json()) == config
    changed = decoding_of(find_run(str(folder), {}), "joint-lm-folds,lm_weight=0.9,beam=8").config
    assert (changed.lm_weight, changed.word_bonus, changed.beam_size) == (0.9, 1.0, 8)
