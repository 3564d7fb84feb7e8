"""The registry of metrics, the inputs they read, and their statistics on disk."""

from pathlib import Path

import numpy as np
import pytest

import pipeline.metrics
from pipeline.analysis.view import measure_of
from pipeline.core.artifacts import RunId, Score
from pipeline.core.errors import UserError
from pipeline.core.layout import path_in_run
from pipeline.metrics import metric_named, metric_names, metrics_of, read_statistics, write_statistics
from pipeline.metrics.error_rates import Transcripts
from pipeline.metrics.metric import Texts, Translations


def test_metric_modules_share_no_name():
    names = [metric.name for module in pipeline.metrics.MODULES for metric in module.METRICS]
    assert sorted(names) == metric_names()


def score_path(metric, decoding, split, scored_on=None):
    return path_in_run(Score(RunId("p", "s", "d", 1), measure_of(metric), decoding, split, scored_on))


def test_folders_are_those_of_the_stages_that_have_the_inputs():
    assert score_path("bleu_paper", "final", "test") == score_path("f1", "final", "test") == "scores/final/test.json"
    assert score_path("wer", "final", "test", "other") == "scores/final/test@other.json"
    assert score_path("perplexity", "final", "dev") == "perplexities/final/dev.json"
    for name in ("names", "rare_names", "idioms", "clauses", "reorderings"):
        assert score_path(name, "final", "dev") == "phenomena/final/dev.json"


def test_metrics_depend_on_inputs_and_test_set():
    def names(references: int, **facts) -> set[str]:
        texts = Texts(["a"], [["a"]] * references)
        return {metric.name for metric in metrics_of(Translations(texts, texts, **facts))}

    common = {"bleu_paper", "bleu_tok", "bleu_tok_lc", "sacrebleu", "chrf"}
    assert names(1) == common | {"gleu"}
    assert names(4, nist=True) == common | {"bleu_closest"}
    assert {metric.name for metric in metrics_of(Transcripts(["a"], ["a"]))} == {"cer", "wer"}


def test_unknown_metric_is_refused_with_nearest_name():
    with pytest.raises(UserError, match=r"'bleu_papr'; allowed: balanced, .*, wer; did you mean 'bleu_paper'\?$"):
        metric_named("bleu_papr")
    with pytest.raises(UserError, match="unknown name 'statistics'"):
        metric_named("statistics")


@pytest.fixture
def written(tmp_path) -> tuple[Path, np.ndarray]:
    """A file of statistics, and its values."""
    path, values = tmp_path / "test.npz", np.random.default_rng(0).integers(9, size=(50, 18))
    write_statistics(path, {"chrf": values})
    return path, values


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9])
def test_statistics_cut_short_are_named(written, part):
    path, _ = written
    path.write_bytes(path.read_bytes()[: int(part * path.stat().st_size)])
    with pytest.raises(UserError, match=r"test\.npz: is damaged .*run the stage `score` again"):
        read_statistics(path.with_suffix(".json"), "chrf")


@pytest.mark.parametrize("kind", ["zero", "one", "random"])
def test_statistics_with_other_bytes_are_refused_or_equal(written, kind):
    path, values = written
    content, generator = path.read_bytes(), np.random.default_rng(1)
    for first in range(0, len(content), 7):
        damage = {"zero": bytes(7), "one": b"\xff" * 7, "random": generator.bytes(7)}[kind]
        path.write_bytes(content[:first] + damage + content[first + 7 :])
        try:
            assert (read_statistics(path.with_suffix(".json"), "chrf") == values).all()
        except UserError as error:
            assert "test.npz: " in str(error)
