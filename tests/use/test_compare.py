"""Default metrics of score files, and comparisons that are refused."""

import pytest
from made_records import score_file

from pipeline.core.errors import UserError
from reprise.cli.score import usual_metric


@pytest.mark.parametrize("metric", ["bleu_paper", "f1", "wer", "perplexity"])
def test_usual_metric_ignores_other_metrics_of_a_score_file(metric, tmp_path):
    value = {"value": 1.0, "low": None, "high": None, "signature": "toy"}
    score_file({"other": value, metric: value}, 10).write(tmp_path / "test.json")
    assert usual_metric(tmp_path / "test.json") == metric


def test_score_file_without_a_usual_metric_lists_its_metrics(tmp_path):
    score_file({"odd": {"value": 1.0, "low": None, "high": None, "signature": "toy"}}, 10).write(tmp_path / "test.json")
    with pytest.raises(UserError, match="choose one with --metric: odd"):
        usual_metric(tmp_path / "test.json")
