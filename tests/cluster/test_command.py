"""A stage as a job runs once, and again when an input or output is no longer there."""

import pytest

from pipeline.__main__ import main
from pipeline.cluster import state as commands
from pipeline.cluster.state import is_done, job_key, perform_command, record_command
from pipeline.core.errors import UserError


@pytest.fixture
def order(tmp_path):
    """Orders the same stage of one input and one output."""
    read, made = tmp_path / "read.json", tmp_path / "made.yaml"
    read.write_text("{}")

    def order(*more: str) -> str:
        record_command(tmp_path / "job", ["prepare", str(read), str(made), *more], [made])
        return job_key(tmp_path / "job")

    order.folder, order.read, order.made = tmp_path / "job", read, made
    return order


@pytest.fixture
def stage(monkeypatch, order):
    """A stand-in for a stage: it writes the output and counts its calls."""
    calls = []

    def perform(arguments):
        calls.append(arguments)
        order.made.write_text("made")

    monkeypatch.setattr(commands, "perform", perform)
    return calls


@pytest.mark.parametrize(
    ("change", "more", "is_same", "is_complete"),
    [
        (lambda order: None, [], True, True),
        (lambda order: None, ["--more"], False, False),
        (lambda order: order.read.write_text("{ }"), [], False, False),
        (lambda order: order.made.unlink(), [], True, False),
    ],
    ids=["nothing", "arguments", "input", "output"],
)
def test_command_is_done_until_files_or_arguments_change(order, stage, change, more, is_same, is_complete):
    key = order()
    perform_command(order.folder)
    change(order)
    assert (order(*more) == key) == is_same
    assert is_done(order.folder, order(*more)) == is_complete and len(stage) == 1


def test_arguments_longer_than_a_file_name_change_the_key(order):
    assert order('{"setting": "' + 300 * "x" + '"}') != order('{"setting": "' + 300 * "y" + '"}')


def test_a_stage_that_makes_nothing_is_no_success(order, monkeypatch):
    order()
    monkeypatch.setattr(commands, "perform", lambda arguments: None)
    with pytest.raises(UserError, match=r"^[\w-]+: ended without writing"):
        perform_command(order.folder)
    assert not (order.folder / "done.json").exists()


def test_local_launch_reports_the_error_of_its_stage(tmp_path, capsys):
    missing = tmp_path / "missing.json"
    job = ["launch", "--folder", str(tmp_path / "job"), "--makes", str(tmp_path / "out"), "--"]
    assert main([*job, "generate", "--dataset", str(missing), "--corpus", str(tmp_path / "out")]) == 1
    assert "error: " in capsys.readouterr().err
    assert not (tmp_path / "job").exists()


def test_launch_refuses_a_folder_or_a_stage_alone(tmp_path, capsys):
    assert main(["launch", "--folder", str(tmp_path)]) == 1
    assert "name the stage after `--`" in capsys.readouterr().err
    assert main(["launch", "--run", str(tmp_path), "--", "prepare"]) == 1
    assert "use --folder" in capsys.readouterr().err
