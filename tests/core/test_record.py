"""A file is read as it was written, or refused with a line that says what is wrong with it and what to do."""

import json

import pytest
from made_records import (
    data_loss,
    parallel_corpus,
    speech_corpus,
    start_cost,
    text_corpus,
    trained_run,
    training_cost,
    validation_line,
)

from pipeline.core.errors import UserError
from pipeline.core.files import append_line
from pipeline.core.json_csv import read_json
from pipeline.core.records.corpus import read_corpus
from pipeline.core.records.record import read_lines_as
from pipeline.core.records.training import AnyProgress, RollBack, SampleLine, TrainedRun, TrainingCost

DONE = trained_run(steps=7, fit=data_loss(0.1), provenance={"commit": "abc", "cores": 2})


def put(path, values) -> None:
    path.write_text(json.dumps(values), encoding="utf-8")


INFINITE = trained_run(dev=data_loss(1.0).model_copy(update={"perplexity": float("inf")}))


@pytest.mark.parametrize("record", [DONE, INFINITE], ids=["usual", "infinite"])
def test_a_record_is_read_as_it_was_written(tmp_path, record):
    record.write(tmp_path / "done.json")
    assert TrainedRun.read(tmp_path / "done.json") == record
    assert json.loads((tmp_path / "done.json").read_text())["format"] == 1
    assert TrainedRun.read_if_there(tmp_path / "other.json") is None


def test_a_line_has_its_characters_as_they_are():
    """A sample of Chinese is read by people, too."""
    line = SampleLine(step=1, source="a", reference="b", hypothesis="Ü 你好")
    assert "Ü 你好" in line.line() and line.line().endswith("}\n")


def test_weights_between_the_good_step_and_roll_back_are_dropped():
    returned = RollBack(at=30, to=10)
    assert [step for step in range(5, 40, 5) if returned.gave_up(step)] == [15, 20, 25]


def test_a_file_without_a_format_is_of_the_first_one(tmp_path):
    put(tmp_path / "done.json", DONE.model_dump(exclude={"format"}, mode="json"))
    assert TrainedRun.read(tmp_path / "done.json") == DONE


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"format": 3, "losses": []}, "is of format 3, this version of Reprise reads 1"),
        ({"losses": [], "format": 3}, "is of format 3, this version of Reprise reads 1"),
        ({"steps": "seven", "format": 3}, "is of format 3, this version of Reprise reads 1"),
        ({"losses": []}, "has an unknown field `losses`"),
        ({"parameters": {"total": 1, "branch_weights": 0, "frozen": 1}}, "has an unknown field `parameters.frozen`"),
        ({"parameters": {"total": 1}}, "has no `parameters.branch_weights`"),
        ({"steps": "seven"}, "steps: Input should be a valid integer, got 'seven'"),
        ({"steps": ["7" * 9999]}, f"steps: Input should be a valid integer, got ['{'7' * 78}…"),
    ],
)
def test_a_file_of_another_version_is_refused_by_name(tmp_path, change, expected):
    put(tmp_path / "done.json", json.loads(DONE.line()) | change)
    with pytest.raises(UserError) as raised:
        TrainedRun.read(tmp_path / "done.json")
    assert str(raised.value) == f"{tmp_path}/done.json: {expected}; remove it and train the run"


def test_a_torn_and_a_missing_file_are_one_line(tmp_path):
    path = tmp_path / "cost.json"
    with pytest.raises(UserError, match=r"cost\.json: no such file; run the stage that writes it$"):
        TrainingCost.read(path)
    training_cost(start_cost()).write(path)
    whole = path.read_bytes()
    for end in (0, 1, len(whole) // 2, len(whole) - 3):
        path.write_bytes(whole[:end])
        with pytest.raises(UserError, match=r"^.*cost\.json: not valid JSON \(.*; remove it and run the stage"):
            TrainingCost.read(path)


def test_a_faulty_line_is_named(tmp_path):
    path = tmp_path / "progress.jsonl"
    path.write_text(validation_line(step=1, dev=data_loss(1.0)).line() + '{"event": "weather", "step": 2}\n')
    with pytest.raises(UserError, match=r"progress\.jsonl: line 2: .*'weather'"):
        read_lines_as(AnyProgress, path)


def test_torn_last_line_is_skipped_and_a_middle_one_is_an_error(tmp_path, caplog):
    path = tmp_path / "progress.jsonl"
    samples = [SampleLine(step=step, source="größer", reference="ü", hypothesis="→") for step in range(3)]
    whole = "".join(sample.line() for sample in samples).encode()
    last = len(samples[-1].line().encode())
    for cut in range(1, last):
        path.write_bytes(whole[:-cut])
        assert read_lines_as(SampleLine, path) == samples[:-1]
        append_line(path, samples[-1].line().encode())
        assert path.read_bytes() == whole
    assert "line 3 is cut off" in caplog.text and "cut off and removed" in caplog.text
    path.write_bytes(whole[: last - 5] + b"\n" + whole[last:])
    with pytest.raises(UserError, match=r"progress\.jsonl: line 1: not valid JSON"):
        read_lines_as(SampleLine, path)


def test_corpora_of_every_kind_are_read_by_their_kind(tmp_path):
    for corpus in (parallel_corpus(7), speech_corpus(), text_corpus()):
        corpus.write(tmp_path / "corpus.json")
        assert read_corpus(tmp_path) == corpus
    older = parallel_corpus(7).model_dump(exclude={"kind", "format"})
    put(tmp_path / "corpus.json", older)
    assert read_corpus(tmp_path) == parallel_corpus(7)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"kind": "image"}, "unknown kind 'image'"),
        ({"format": 2}, "format 2"),
        ({"dataset": ["a", "b"], "format": 2}, "format 2"),  # with another fault before
    ],
)
def test_a_corpus_of_an_unknown_kind_or_version_is_refused(tmp_path, change, expected):
    put(tmp_path / "corpus.json", text_corpus().model_dump() | change)
    with pytest.raises(UserError, match=f"corpus.json: is of .*{expected}.*remove it and encode the corpus"):
        read_corpus(tmp_path)


@pytest.mark.parametrize("key", ["format", "steps", "commit"])
def test_key_that_stands_twice_is_refused(tmp_path, key):
    path = tmp_path / "done.json"
    path.write_text(DONE.line().replace(f'"{key}":', f'"{key}": 1, "{key}":', 1))
    with pytest.raises(UserError, match=rf"done\.json: .*the key '{key}' appears twice"):
        TrainedRun.read(path)
    with pytest.raises(UserError, match=rf"done\.json: not valid JSON \(the key '{key}' appears twice\)"):
        read_json(path)
