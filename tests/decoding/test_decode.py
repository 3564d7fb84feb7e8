"""The stage `decode` makes all outputs of a decoding with one loaded model."""

import json
import random
from pathlib import Path

import pytest
from toy_run import TRANSFORMER, WEIGHTED, write_corpus, write_run

from pipeline.__main__ import main
from pipeline.cluster.state import record_decodings
from pipeline.config import DecodingConfig
from pipeline.core.errors import UserError
from pipeline.core.records.corpus import read_corpus
from pipeline.core.records.outputs import Manifest
from pipeline.decoding.averaging import write_average
from pipeline.decoding.trained_model import TrainedModel
from pipeline.outputs import decode
from pipeline.outputs.decode import decode_ready
from pipeline.outputs.manifest import entries_of, part_of
from pipeline.outputs.plan import DecodingPlan, PlannedTraining, identify_search, identify_weights, output_keys
from pipeline.stages import PIPELINE

SETTINGS = {"beam_size": 2, "max_extra_length": 4, "average_last": 2}
MAP = {"kind": "attention", "file": "attention/final/test-distant.json", "split": "test", "choice": "distant"}
TRANSLATION = {"kind": "translation", "file": "translations/final/test.tok", "split": "test"}
AVERAGED = {"kind": "averaged", "file": "averaged/final.safetensors"}
BROKEN = {"kind": "translation", "file": "translations/final/test2.tok", "split": "test2"}


@pytest.fixture
def run(tmp_path):
    """A run folder where the layout has it, with three checkpoints."""
    folder = tmp_path / "work/smoke/runs/toy/base/toy/seed1-12345678"
    write_run(folder, write_corpus(tmp_path / "corpus"), checkpoints=3)
    return folder


def plan_of(*outputs, **settings) -> DecodingPlan:
    full = DecodingConfig.model_validate(SETTINGS | settings).model_dump()
    return DecodingPlan(name="final", settings=full, outputs=list(outputs) or [AVERAGED, MAP, TRANSLATION])


def call(run: Path, plan: DecodingPlan) -> int:
    return main(["decode", "--run", str(run), "--plan", plan.model_dump_json(), "--threads", "1"])


def times(run: Path) -> dict[str, int]:
    return {str(path.relative_to(run)): path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()}


def test_outputs_are_those_of_separate_steps(run, tmp_path):
    assert call(run, plan_of()) == 0
    weights, out = run / "own.safetensors", tmp_path / "own.tok"
    write_average(run, 2, False, weights)
    decoding = json.dumps(plan_of().settings)
    words = ["--weights", str(weights), "--decoding", decoding, "--out", str(out), "--text", str(tmp_path / "own.txt")]
    assert main(["translate", *words]) == 0
    assert (run / TRANSLATION["file"]).read_text() == out.read_text()
    listed = Manifest.read(run / "final/outputs.json").entries
    assert set(listed) == {artifact["file"] for artifact in (AVERAGED, MAP, TRANSLATION)}
    parts = {f"translations/final/test.{end}" for end in ("tok", "txt", "json")}
    assert set(listed[TRANSLATION["file"]].files) == parts


def test_the_model_is_loaded_once_and_not_when_all_is_there(run, monkeypatch):
    loads, load = [], TrainedModel.load
    monkeypatch.setattr(TrainedModel, "load", lambda *given: loads.append(given) or load(*given))
    for _ in range(2):
        assert call(run, plan_of()) == 0 and len(loads) == 1


def test_a_setting_of_the_search_redoes_what_is_searched_alone(run):
    call(run, plan_of())
    before = times(run)
    assert call(run, plan_of(beam_size=3)) == 0
    redone = {name.split("/")[0] for name, time in times(run).items() if before.get(name) != time}
    assert redone - {".digests"} == {"translations", "final"}


def test_a_setting_of_the_weights_redoes_everything(run):
    keys, changed = (output_keys(run, plan_of(average_last=last)) for last in (2, 3))
    assert not set(keys.values()) & set(changed.values())


@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["own corpus", "another corpus"])
def test_key_of_perplexity_is_of_the_corpus_that_is_read(run, tmp_path, is_elsewhere):
    write_corpus(tmp_path / "other", pairs=random.randrange(30, 60))
    perplexity = {"kind": "perplexity", "file": "perplexities/final/test.json", "split": "test"}
    perplexity |= {"corpus": str(tmp_path / "other/encoded")} if is_elsewhere else {}

    def key():
        return output_keys(run, plan_of(perplexity))[perplexity["file"]]

    def redraw(name):
        record = read_corpus(tmp_path / name / "encoded")
        record.model_copy(update={"digest": random.randbytes(32).hex()}).write(tmp_path / name / "encoded/corpus.json")
        return key()

    first, second = key(), redraw("other")
    assert (second != first) == is_elsewhere
    assert redraw("corpus") != second, "the vocabulary is of the run's own corpus"


def test_every_setting_of_a_decoding_is_in_a_key(run):
    """Two settings choose the weights; all others belong to the search."""
    plan, weights = plan_of(), {"averaged": "best", "average_last": 3}
    for setting in DecodingConfig.model_fields:
        settings = plan.settings | {setting: weights.get(setting, "another")}
        other = DecodingPlan(name="final", settings=settings, outputs=[])
        assert (identify_search(plan) != identify_search(other)) == (setting not in weights)
        if setting in weights:
            assert identify_weights(run, plan) != identify_weights(run, other)
    plain = DecodingPlan(name="final", settings={"beam_size": 2}, outputs=[])
    assert identify_weights(run, plain) == identify_weights(run, plain.model_copy(update={"settings": None}))


def test_missing_weights_of_another_run_are_named(run):
    missing = run / "tuned/other.json"
    plan = plan_of().model_copy(update={"tuned_with": [str(missing)]})
    with pytest.raises(UserError, match=f"{missing}: weights are not tuned; run `decode`"):
        output_keys(run, plan)


def test_one_output_that_fails_does_not_cost_the_others(run, capsys):
    plan = plan_of(AVERAGED, BROKEN, TRANSLATION)
    assert call(run, plan) == 1
    assert "1 of 3 outputs failed" in capsys.readouterr().err
    assert (run / TRANSLATION["file"]).exists() and not (run / "final/outputs.json").exists()
    recorded = entries_of(run / "final/outputs.json")
    assert [name for name, entry in recorded.items() if entry.error] == [BROKEN["file"]]
    assert call(run, plan_of(AVERAGED, TRANSLATION)) == 0
    assert not part_of(run / "final/outputs.json").exists()


def test_completeness_is_known_without_making_anything(run):
    args = PIPELINE.parse(["decode", "--run", str(run), "--plan", plan_of().model_dump_json()])
    assert not decode.is_complete(args)
    call(run, plan_of())
    before = times(run)
    assert decode.is_complete(args) and times(run) == before


def test_freed_average_is_an_error_only_if_a_decoding_reads_it(run):
    call(run, plan_of())
    (run / AVERAGED["file"]).unlink()
    for path in (run / "checkpoints").iterdir():
        path.unlink()
    assert call(run, plan_of()) == 0
    assert call(run, plan_of(beam_size=3)) == 1


@pytest.mark.parametrize("model", [TRANSFORMER, WEIGHTED])
def test_attention_maps_use_the_trained_branch_weights(tmp_path, model):
    corpus, maps = write_corpus(tmp_path / "corpus"), []
    branch_weights = "uniform" if model is WEIGHTED else "learned"
    for name, plan in (
        ("together", plan_of(MAP, TRANSLATION, average_last=1, branch_weights=branch_weights)),
        ("alone", plan_of(MAP, average_last=1)),
    ):
        write_run(tmp_path / name, corpus, model)
        assert call(tmp_path / name, plan) == 0
        maps.append(json.loads((tmp_path / name / MAP["file"]).read_text()))
    assert maps[0] == maps[1]


def planned(run: Path, *plans: DecodingPlan) -> None:
    """Record the decodings as the launcher of a training does."""
    record_decodings(run, PlannedTraining(threads=1, plans=[*plans]).model_dump_json())


def test_the_end_of_a_training_decodes_what_needs_no_other_run(run):
    other = plan_of(TRANSLATION).model_copy(update={"name": "fused", "language_model": "elsewhere"})
    away = TRANSLATION | {"corpus": "nowhere/encoded"}
    planned(run, plan_of(), other, plan_of(away).model_copy(update={"name": "away"}))
    decode_ready(run)
    assert [path.parent.name for path in run.glob("*/outputs.json*")] == ["final"]
    assert (run / TRANSLATION["file"]).exists()


def test_only_the_stage_decode_completes_a_manifest(run, monkeypatch):
    """Snakemake records the parameters of its own jobs alone, so only they may make its outputs."""
    planned(run, plan_of())
    decode_ready(run)
    path = run / "final/outputs.json"
    assert part_of(path).exists() and not path.exists()
    monkeypatch.setattr(TrainedModel, "load", None)
    assert call(run, plan_of()) == 0
    assert path.exists() and not part_of(path).exists()


def test_a_failure_at_the_end_of_a_training_is_left_to_the_rule(run):
    planned(run, plan_of(AVERAGED, BROKEN))
    decode_ready(run)
    assert entries_of(run / "final/outputs.json")[BROKEN["file"]].error


def test_unexpected_decoding_error_does_not_fail_the_training(run, monkeypatch, caplog):
    planned(run, plan_of())
    monkeypatch.setattr(decode, "make_missing", lambda *given: 1 / 0)
    decode_ready(run)
    assert "ZeroDivisionError" in caplog.text


def test_a_run_that_no_report_wants_is_trained_alone(run):
    decode_ready(run)
    assert not list(run.glob("*/outputs.json*"))
