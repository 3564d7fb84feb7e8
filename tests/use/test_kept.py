"""What is kept of finished runs: a file a seed, and tables over the seeds that are there."""

from contextlib import nullcontext
from pathlib import Path

import pytest
from made_records import data_loss, score_file, start_cost, trained_run, training_cost

from pipeline.core.artifacts import RunId
from pipeline.core.errors import UserError
from pipeline.papers.project import load_project
from reprise.__main__ import main as reprise
from reprise.kept import KeptRun, keep, kept_in, metrics_shown, place, table_rows

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def project():
    return load_project(ROOT, {"scale": "small"})


@pytest.fixture
def kept(project):
    """A run with given dev loss and BLEU (value, low, high)."""

    def make(seed: int, nats: float, bleu: tuple[float, float, float], system: str = "C", **changed) -> KeptRun:
        spec = project.run_spec(RunId("weighted", system, "multi30k-en-de", seed))
        value, low, high = bleu
        metrics = {"bleu_paper": {"value": value, "low": low, "high": high, "signature": "toy"}}
        return KeptRun(
            run=spec.model_copy(update={"training": spec.training.model_copy(update=changed)}),
            trained=trained_run(dev=data_loss(nats), weights_digest=f"{system}{seed}", provenance={"commit": "abc"}),
            cost=training_cost(start_cost(seconds=900.0)),
            late_gain=0.004 + 0.001 * seed,
            scores={"scores/final/test": score_file(metrics, 10)},
        )

    return make


def test_table_row_has_means_and_deviations_over_seeds(kept):
    runs = [kept(1, 2.0, (30.0, 29.0, 31.0)), kept(2, 2.2, (33.0, 32.0, 34.0)), kept(3, 2.1, (36.0, 35.0, 37.0))]
    (row,) = table_rows(runs, [])
    assert row == {
        "system": "weighted/C",
        "dataset": "multi30k-en-de",
        "scale": "small",
        "seeds": "1 2 3",
        "updates": "1",
        "dev loss": "2.100 ± 0.100",
        "fell in last fifth": "0.6 %",
        "bleu_paper final/test": "33.00 ± 3.00",
        "hours": "0.75",
        "commit": "abc",
    }


def test_table_row_of_one_seed_has_the_interval_over_sentences(kept):
    (row,) = table_rows([kept(1, 2.0, (30.0, 29.0, 31.25))], [])
    assert (row["bleu_paper final/test"], row["dev loss"]) == ("30.00 (29.00–31.25)", "2.000")


def test_seeds_of_other_settings_have_a_row_of_their_own(kept):
    bleu = (30.0, 29.0, 31.0)
    runs = [kept(1, 2.0, bleu), kept(2, 2.0, bleu, max_steps=7), kept(1, 2.0, bleu, system="C1-order")]
    assert sorted((row["system"], row["seeds"]) for row in table_rows(runs, [])) == [
        ("weighted/C", "1"),
        ("weighted/C", "2"),
        ("weighted/C1-order", "1"),
    ]


def test_kept_runs_are_read_back_and_not_overwritten_by_others(kept, tmp_path):
    one, two = kept(1, 2.0, (30.0, 29.0, 31.0)), kept(2, 2.2, (33.0, 32.0, 34.0))
    for run in (two, one, two):
        keep(run, tmp_path / "kept")
    assert kept_in(tmp_path / "kept") == [one, two]
    other = one.model_copy(update={"trained": trained_run(weights_digest="other")})
    with pytest.raises(UserError, match="is of another training"):
        keep(other, tmp_path / "kept")
    assert kept_in(tmp_path / "kept") == [one, two]


def test_scores_of_an_earlier_training_are_not_recorded(kept, tmp_path):
    one = kept(1, 2.0, (30.0, 29.0, 31.0))
    one.trained.write(tmp_path / "done.json")
    (tmp_path / "scores" / "final").mkdir(parents=True)
    for training, refused in (("C1", False), (None, False), ("earlier", True)):
        score = one.scores["scores/final/test"].model_copy(update={"training": training})
        score.write(tmp_path / "scores" / "final" / "test.json")
        with pytest.raises(UserError, match=r"test\.json: scores weights") if refused else nullcontext():
            assert KeptRun.of(tmp_path, one.run).scores == {"scores/final/test": score}


def test_folders_of_a_machine_are_left_out():
    assert place("/scratch/runs/me/corpora/a/prepared/test.de") == "corpora/a/prepared/test.de"
    assert place("../../corpora/a/encoded") == "corpora/a/encoded"
    assert place("work/small/runs/weighted/C/a/seed1/translations/final/test.tok").startswith(
        "runs/weighted/C/a/seed1/"
    )
    assert place("/home/me/test.de") == "test.de"


def test_how_a_machine_does_the_work_makes_no_other_row(kept):
    bleu = (30.0, 29.0, 31.0)
    (row,) = table_rows([kept(1, 2.0, bleu), kept(2, 2.0, bleu, micro_batch_tokens=512, tensorboard=True)], [])
    assert row["seeds"] == "1 2"


def test_scores_of_other_references_are_never_averaged(kept):
    one, two = kept(1, 2.0, (30.0, 29.0, 31.0)), kept(2, 2.0, (50.0, 49.0, 51.0))
    for changed in ({"references": "other"}, {"test_set": "other"}):
        score = two.scores["scores/final/test"].model_copy(update=changed)
        other = two.model_copy(update={"scores": {"scores/final/test": score}})
        with pytest.raises(UserError, match="different references"):
            table_rows([one, other], [])


def test_a_mean_of_fewer_seeds_than_its_row_has_says_so(kept):
    one, two = kept(1, 2.0, (30.0, 29.0, 31.0)), kept(2, 2.0, (50.0, 49.0, 51.0))
    score = two.scores["scores/final/test"].model_copy(update={"metrics": {}})
    (row,) = table_rows([one, two.model_copy(update={"scores": {"scores/final/test": score}})], [])
    assert row["bleu_paper final/test"] == "30.00 (29.00–31.00), 1 of 2 seeds"


def test_scores_that_were_kept_before_stay(kept, tmp_path):
    one = kept(1, 2.0, (30.0, 29.0, 31.0))
    keep(one, tmp_path)
    keep(one.model_copy(update={"scores": {"scores/final/dev": one.scores["scores/final/test"]}}), tmp_path)
    (both,) = kept_in(tmp_path)
    assert sorted(both.scores) == ["scores/final/dev", "scores/final/test"]


def test_errors_say_what_is_missing(kept, tmp_path, capsys):
    def told(folder: Path, *more: str) -> str:
        assert reprise(["record", "--into", str(folder), *more]) == 1
        return capsys.readouterr().err

    keep(kept(1, 2.0, (30.0, 29.0, 31.0)), tmp_path)
    assert "has no records" in told(tmp_path / "none")
    assert "unknown name 'bleau'" in told(tmp_path, "--metric", "bleau")
    assert "nothing recorded has the metric gleu" in told(tmp_path, "--metric", "gleu")
    assert reprise(["record", "--into", str(tmp_path)]) == 0


def test_metrics_shown_are_those_of_the_table_or_the_usual_ones(kept, tmp_path):
    table, text = tmp_path / "table.csv", kept(1, 2.0, (30.0, 29.0, 31.0))
    value = {"value": 7.5, "low": None, "high": None, "signature": "toy"}
    speech = text.model_copy(update={"scores": {"scores/final/test": score_file({"wer": value}, 10)}})
    assert metrics_shown(table, [text]) == ["bleu_paper"]
    table.write_text("system,dev loss,other final/test,bleu_paper final/test,hours\n")
    assert metrics_shown(table, [text]) == ["bleu_paper"]
    assert metrics_shown(table, [text, speech]) == ["bleu_paper", "wer"]
