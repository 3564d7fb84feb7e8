"""Folders of runs as claims read them, samples that are read once, and convergence of losses."""

from types import SimpleNamespace

import pytest
from made_records import score_file

from pipeline.analysis.run_folders import RunFolders, require_one_basis
from pipeline.analysis.training_curves import Floor, below_floor, load_floors
from pipeline.analysis.view import ScoredSplits
from pipeline.config import DecodingConfig
from pipeline.core.errors import UserError

SIGNATURE = "text:moses|case:mixed|version:2.6.0"


def scores(signature: str = SIGNATURE, **changed):
    value = {"value": 1.0, "low": None, "high": None, "signature": signature}
    return [score_file({"bleu": value}, 10).model_copy(update=changed)]


@pytest.mark.parametrize(
    "other", [scores(references="others"), scores(test_set="another"), scores(SIGNATURE.replace("mixed", "lc"))]
)
def test_seeds_that_were_scored_otherwise_are_refused(other):
    with pytest.raises(UserError, match=r"paper/system: seeds were .* of test, .*, run `reprise verify --repair"):
        require_one_basis([scores(), other], "bleu", "paper/system")


def test_a_newer_library_scores_the_same_metric():
    require_one_basis([scores(), scores(SIGNATURE.replace("2.6.0", "2.7.1"))], "bleu", "paper/system")


@pytest.mark.parametrize(
    ("metric", "reach", "below", "above"), [("wer", 85, 85.0, 84.9), ("bleu_paper", 5, 5.0, 5.1), ("gleu", 5, 0.0, 9.0)]
)
def test_a_score_at_the_floor_is_below_it(metric, reach, below, above):
    floors = {metric: Floor(reach=reach, why="it is so")}
    assert below_floor(floors, metric, below) == f"{metric} of {below:.4g} is not better than {reach}: it is so"
    assert below_floor(floors, metric, above) == below_floor({}, metric, below) == ""


def test_a_floor_needs_a_reason(tmp_path):
    (tmp_path / "floors.yaml").write_text("wer: {reach: 85}\n")
    with pytest.raises(UserError, match=r"floors\.yaml: wer\.why: "):
        load_floors(tmp_path / "floors.yaml")


def test_tuned_weights_and_speed_are_no_changed_settings():
    tuned = DecodingConfig(ngram_order=3, lm_weights=[0.1, 0.2], tuned_with=["ctc@an4"])
    recorded = tuned.model_dump(mode="json")
    recorded |= {"lm_weight": 0.2, "word_bonus": 1.0, "batch_tokens": 1, "tuned_with": []}
    assert tuned.changed_since(recorded) == []
    assert tuned.changed_since(recorded | {"lm_weights": [0.1]}) == ["lm_weights"]
    fixed = tuned.model_copy(update={"lm_weights": []})
    assert fixed.changed_since(recorded) == ["lm_weight", "word_bonus", "lm_weights"]


def test_setting_that_a_record_lacks_had_its_default():
    assert DecodingConfig().changed_since({}) == []
    assert DecodingConfig(beam_size=7).changed_since({}) == ["beam_size"]


def test_sample_is_read_once_for_each_score(monkeypatch):
    """Runs, decodings, metric, dataset, splits and the scored dataset each make another sample."""
    monkeypatch.setattr(RunFolders, "_sample", lambda *asked: object())
    folders = RunFolders(SimpleNamespace(layout=None))
    score = ScoredSplits(metric="wer", dataset="wsj", split="test")
    changes = [{"metric": "cer"}, {"dataset": "an4"}, {"split": ["test", "test2"]}, {"scored_on": "an4"}]
    asked = [(["run"], ["final"], score), (["other"], ["final"], score), (["run"], ["greedy"], score)]
    asked += [(["run"], ["final"], score.model_copy(update=change)) for change in changes]
    samples = [folders.sample(*one) for one in asked]
    assert len({id(sample) for sample in samples}) == len(asked)
    assert all(folders.sample(*one) is sample for one, sample in zip(asked, samples, strict=True))
