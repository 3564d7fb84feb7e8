"""Which metric two score files are compared by, and what is refused."""

import pytest
from made_records import score_file

from pipeline.core.errors import UserError
from reprise.cli.compare import usual_metric


@pytest.mark.parametrize("metric", ["bleu_paper", "f1", "wer", "perplexity"])
def test_score_files_are_compared_by_what_is_usual_for_what_they_score(metric, tmp_path):
    value = {"value": 1.0, "low": None, "high": None, "signature": "toy"}
    score_file({"other": value, metric: value}, 10).write(tmp_path / "test.json")
    assert usual_metric(tmp_path / "test.json") == metric


def test_a_score_file_without_a_usual_metric_names_those_that_it_has(tmp_path):
    score_file({"odd": {"value": 1.0, "low": None, "high": None, "signature": "toy"}}, 10).write(tmp_path / "test.json")
    with pytest.raises(UserError, match="name one of its metrics by --metric: odd"):
        usual_metric(tmp_path / "test.json")
