"""Scores that may be averaged."""

import pytest
from made_records import score_file

from pipeline.analysis.run_folders import require_one_basis
from pipeline.core.errors import UserError

SIGNATURE = "text:moses|case:mixed|version:2.6.0"


def scores(signature: str = SIGNATURE, **changed):
    value = {"value": 1.0, "low": None, "high": None, "signature": signature}
    return [score_file({"bleu": value}, 10).model_copy(update=changed)]


@pytest.mark.parametrize(
    "other", [scores(references="others"), scores(test_set="another"), scores(SIGNATURE.replace("mixed", "lc"))]
)
def test_seeds_that_were_scored_otherwise_are_refused(other):
    with pytest.raises(UserError, match="paper/system: seeds were scored on different references of test"):
        require_one_basis([scores(), other], "bleu", "paper/system")


def test_a_newer_library_scores_the_same_metric():
    require_one_basis([scores(), scores(SIGNATURE.replace("2.6.0", "2.7.1"))], "bleu", "paper/system")
