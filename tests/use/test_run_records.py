"""Records of finished runs, a file per seed, and tables over the seeds that are there."""

from contextlib import nullcontext

import pytest
from made_records import data_loss, decoded, score_file, start_cost, trained_run, training_cost
from real_project import real_project

from pipeline.core.artifacts import RunId
from pipeline.core.digests import sha256_file, write_note
from pipeline.core.errors import UserError
from reprise.__main__ import main as reprise
from reprise.cli.record import RunRecord, portable_path, read_records, shown_metrics, table_rows


def record(seed: int, nats: float = 2.0, bleu: float = 30.0, system: str = "C", **changed) -> RunRecord:
    """Return a record with a dev loss, and a BLEU whose interval is ± 1."""
    spec = real_project({"scale": "small"}).run_spec(RunId("weighted", system, "multi30k-en-de", seed))
    metrics = {"bleu_paper": {"value": bleu, "low": bleu - 1, "high": bleu + 1, "signature": "toy"}}
    return RunRecord(
        run=spec.model_copy(update={"training": spec.training.model_copy(update=changed)}),
        trained=trained_run(dev=data_loss(nats), weights_digest=f"{system}{seed}", provenance={"commit": "abc"}),
        cost=training_cost(start_cost(seconds=90.0)),
        late_gain=0.004 + 0.001 * seed,
        scores={"scores/final/test": score_file(metrics, 10)},
    )


def test_table_row_has_means_and_deviations_over_seeds():
    runs = [record(1), record(2, 2.2, 33.0), record(3, 2.1, 36.0)]
    (row,) = table_rows(runs, [])
    assert row == {
        "system": "weighted/C",
        "dataset": "multi30k-en-de",
        "scale": "small",
        "seeds": "1 2 3",
        "steps": "1",
        "dev loss": "2.100 ± 0.100",
        "fell in last fifth": "0.6 %",
        "bleu_paper final/test": "33.00 ± 3.00",
        "hours": "0.075",
        "commit": "abc",
    }


@pytest.mark.parametrize(("hours", "shown"), [(12_345.6, "12346"), (9_999.7, "10000"), (9_999.4, "9999")])
def test_many_hours_of_a_table_row_are_written_out(hours, shown):
    costly = record(1).model_copy(update={"cost": training_cost(start_cost(seconds=hours * 3600))})
    assert [row["hours"] for row in table_rows([costly], [])] == [shown]


def test_new_table_shows_sacrebleu_and_signatures(tmp_path):
    one = record(1)
    metrics = {"bleu_paper": one.scores["scores/final/test"].metrics["bleu_paper"]}
    metrics |= {
        name: {"value": 7.5, "low": None, "high": None, "signature": f"of {name}"} for name in ("sacrebleu", "ter")
    }
    one.model_copy(update={"scores": {"scores/final/test": score_file(metrics, 10)}}).store(tmp_path)
    assert reprise(["record", "--into", str(tmp_path)]) == 0
    header, _, row, *notes = (tmp_path / "table.md").read_text().splitlines()
    assert "| sacrebleu final/test |" in header and " 7.50 |" in row and " ter " not in header
    assert "- bleu_paper: `toy`" in notes and "- sacrebleu: `of sacrebleu`" in notes and "of ter" not in str(notes)


def test_table_row_of_one_seed_has_the_interval_over_sentences():
    (row,) = table_rows([record(1, 2.0, 30.25)], [])
    assert (row["bleu_paper final/test"], row["dev loss"]) == ("30.25 (29.25–31.25)", "2.000")


def test_infinite_score_of_a_seed_has_no_deviation():
    (row,) = table_rows([record(1, bleu=float("inf")), record(2)], [])
    assert (row["bleu_paper final/test"], row["dev loss"]) == ("inf", "2.000 ± 0.000")


def test_seeds_of_other_settings_than_the_machines_have_own_rows():
    of_the_machine = record(3, micro_batch_tokens=512, tensorboard=True)
    runs = [record(1), record(2, max_steps=7), of_the_machine, record(1, system="C1-order")]
    assert sorted((row["system"], row["seeds"]) for row in table_rows(runs, [])) == [
        ("weighted/C", "1 3"),
        ("weighted/C", "2"),
        ("weighted/C1-order", "1"),
    ]


def test_seeds_of_other_decodings_are_not_averaged(tmp_path):
    """A beam that changed between two seeds is refused; the size of batches changes no output."""
    runs = [record(1), record(2), record(3)]
    for one, settings in zip(runs, ({"beam_size": 4}, {"beam_size": 4, "batch_tokens": 9}, {}), strict=True):
        one.trained.write(tmp_path / str(one.run.seed) / "done.json")
        one.scores["scores/final/test"].write(tmp_path / str(one.run.seed) / "scores/final/test.json")
        if settings:
            decoded(decoding=settings).write(tmp_path / str(one.run.seed) / "translations/final/test.json")
    first, second, older = (RunRecord.of(tmp_path / str(one.run.seed), one.run) for one in runs)
    assert [row["seeds"] for row in table_rows([first, second, older], [])] == ["1 2 3"]
    decoded(decoding={"beam_size": 8}).write(tmp_path / "1/translations/final/dev.json")  # of no score here
    first = RunRecord.of(tmp_path / "1", first.run)
    assert [row["seeds"] for row in table_rows([first, second, older], [])] == ["1 2 3"]
    decoded(decoding={"beam_size": 8}).write(tmp_path / "2/translations/final/test.json")
    changed = RunRecord.of(tmp_path / "2", second.run)
    with pytest.raises(UserError, match="weighted/C, scores/final/test: seeds were decoded with different beam_size"):
        table_rows([first, changed, older], [])
    for one in (second, changed):
        one.store(tmp_path / "records")
    assert read_records(tmp_path / "records") == [changed]


def test_kept_runs_are_read_back_and_not_overwritten_by_others(tmp_path):
    one, two = record(1), record(2)
    for run in (two, one, two):
        run.store(tmp_path / "records")
    assert read_records(tmp_path / "records") == [one, two]
    other = one.model_copy(update={"trained": trained_run(weights_digest="other")})
    with pytest.raises(UserError, match="belongs to another training"):
        other.store(tmp_path / "records")
    assert read_records(tmp_path / "records") == [one, two]


def test_scores_of_an_earlier_training_are_not_recorded(tmp_path):
    one = record(1)
    one.trained.write(tmp_path / "done.json")
    (tmp_path / "scores" / "final").mkdir(parents=True)
    for training, refused in (("C1", False), (None, False), ("earlier", True)):
        score = one.scores["scores/final/test"].model_copy(update={"training": training})
        score.write(tmp_path / "scores" / "final" / "test.json")
        with pytest.raises(UserError, match=r"test\.json: scores weights") if refused else nullcontext():
            assert RunRecord.of(tmp_path, one.run).scores == {"scores/final/test": score}


def test_scores_of_an_earlier_output_are_not_recorded(tmp_path, caplog):
    one, output = record(1), tmp_path / "translations/final/test.tok"
    one.trained.write(tmp_path / "done.json")
    output.parent.mkdir(parents=True)
    output.write_text("a dog\n")
    write_note(output)
    for split in ("test", "dev"):
        inputs = {f"runs/weighted/C/a/seed1/translations/final/{split}.tok": sha256_file(output)}
        score = one.scores["scores/final/test"].model_copy(update={"inputs": inputs})
        score.write(tmp_path / f"scores/final/{split}.json")
    assert RunRecord.of(tmp_path, one.run).scores.keys() == {"scores/final/test", "scores/final/dev"}
    output.write_text("two cats\n")
    write_note(output)
    assert RunRecord.of(tmp_path, one.run).scores.keys() == {"scores/final/dev"}
    assert "scores/final/test.json: is left out, as its output was decoded again since" in caplog.text


def test_recorded_score_keeps_the_settings_it_was_decoded_with(tmp_path):
    one, output = record(1), tmp_path / "translations/final/test.tok"
    one.trained.write(tmp_path / "done.json")
    for beam, text, scores in ((4, "a dog\n", ("scores", "perplexities")), (8, "two cats\n", ())):
        decoded(decoding={"beam_size": beam}).write(output.with_suffix(".json"))
        output.write_text(text)
        write_note(output)
        inputs = {"runs/weighted/C/a/seed1/translations/final/test.tok": sha256_file(output)}
        score = one.scores["scores/final/test"]
        for measure in scores:
            read = inputs if measure == "scores" else {}
            score.model_copy(update={"inputs": read}).write(tmp_path / measure / "final/test.json")
        RunRecord.of(tmp_path, one.run).store(tmp_path / "records")
    (kept,) = read_records(tmp_path / "records")
    assert kept.scores.keys() == {"scores/final/test", "perplexities/final/test"}
    assert kept.decodings == {"final/test": {"beam_size": 4}}


def test_folders_of_a_machine_are_left_out():
    assert portable_path("/scratch/runs/me/corpora/a/prepared/test.de") == "corpora/a/prepared/test.de"
    assert portable_path("../../corpora/a/encoded") == "corpora/a/encoded"
    run = "runs/weighted/C/a/seed1/"
    assert portable_path(f"work/small/{run}translations/final/test.tok").startswith(run)
    assert portable_path("/home/me/test.de") == "test.de"


def with_score(run: RunRecord, **changed) -> RunRecord:
    scores = {name: score.model_copy(update=changed) for name, score in run.scores.items()}
    return run.model_copy(update={"scores": scores})


@pytest.mark.parametrize("field", ["references", "test_set"])
def test_scores_of_other_references_are_never_averaged(field):
    with pytest.raises(UserError, match="different references"):
        table_rows([record(1), with_score(record(2), **{field: "other"})], [])


def test_mean_of_fewer_seeds_than_its_row_is_marked():
    (row,) = table_rows([record(1), with_score(record(2, bleu=50.0), metrics={})], [])
    assert row["bleu_paper final/test"] == "30.00 (29.00–31.00), 1 of 2 seeds"


def test_scores_that_were_kept_before_stay(tmp_path):
    one = record(1)
    one.store(tmp_path)
    one.model_copy(update={"scores": {"scores/final/dev": one.scores["scores/final/test"]}}).store(tmp_path)
    (both,) = read_records(tmp_path)
    assert sorted(both.scores) == ["scores/final/dev", "scores/final/test"]


@pytest.mark.parametrize("is_first", [True, False])
def test_runs_whose_hyphens_fall_alike_have_own_files(tmp_path, is_first):
    """Each is found again under its name, also if the other's file is gone."""
    one = record(1)
    assert one.run.dataset == "multi30k-en-de"
    run = one.run.model_copy(update={"system": "C-multi30k", "dataset": "en-de"})
    two = one.model_copy(update={"run": run, "trained": trained_run(weights_digest="another")})
    first, second = (one, two) if is_first else (two, one)
    paths = [each.store(tmp_path) for each in (first, second)]
    assert paths[0].name == "weighted-C-multi30k-en-de-small-seed1.json" and paths[0] != paths[1]
    assert paths == [each.store(tmp_path) for each in (first, second)]
    paths[0].unlink()
    assert [each.store(tmp_path) for each in (second, first)] == paths[::-1]
    assert {each.run.system for each in read_records(tmp_path)} == {"C", "C-multi30k"}


def test_errors_say_what_is_missing(tmp_path, refused):
    record(1).store(tmp_path)
    none = tmp_path / "none yet"
    assert f"has no records; run `reprise record RUN --into '{none}'`" in refused("record", "--into", none)
    assert "unknown name 'bleau'" in refused("record", "--into", tmp_path, "--metric", "bleau")
    assert "no record has the metric gleu" in refused("record", "--into", tmp_path, "--metric", "gleu")
    assert reprise(["record", "--into", str(tmp_path)]) == 0


def test_shown_metrics_are_those_of_the_table_or_the_usual_ones(tmp_path):
    table, text = tmp_path / "table.csv", record(1)
    value = {"value": 7.5, "low": None, "high": None, "signature": "toy"}
    speech = text.model_copy(update={"scores": {"scores/final/test": score_file({"wer": value}, 10)}})
    assert shown_metrics(table, [text]) == ["bleu_paper"]
    table.write_text("system,dev loss,other final/test,bleu_paper final/test,hours\n")
    assert shown_metrics(table, [text]) == ["bleu_paper"]
    assert shown_metrics(table, [text, speech]) == ["bleu_paper", "wer"]
