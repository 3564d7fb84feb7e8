"""Orders of one folder: each is done once what it reads is made, by one job, and one that fails leaves the others."""

import json

import pytest

from pipeline.cluster import orders
from pipeline.cluster.launch import settled
from pipeline.cluster.markers import is_done
from pipeline.cluster.orders import perform_orders, place, ready_orders
from pipeline.core.errors import UserError
from pipeline.core.records.jobs import Command, Failure


@pytest.fixture
def order(tmp_path, monkeypatch):
    """Orders a copy; a file called `wrong` is copied by no stage."""
    monkeypatch.setattr(orders, "PROGRAM", ["cp"])

    def order(name, read, made):
        place(
            tmp_path / "jobs" / name, [str(tmp_path / read), str(tmp_path / made)], [tmp_path / made], [tmp_path / read]
        )
        return tmp_path / "jobs" / name

    return order


def done(folder) -> bool:
    return is_done(folder, Command.read(folder / "command.json").key)


def test_orders_that_read_what_others_make_are_done_after_them_whatever_they_are_called(order, tmp_path):
    (tmp_path / "weights").write_text("7")
    found = [order("a", "averaged", "translation"), order("b", "weights", "averaged"), order("c", "elsewhere", "more")]
    perform_orders(tmp_path / "jobs")
    assert [done(folder) for folder in found] == [True, True, False]
    assert (tmp_path / "translation").read_text() == "7"
    (tmp_path / "elsewhere").write_text("8")
    assert [folder.name for folder, _ in ready_orders(tmp_path / "jobs")] == ["c"]


def test_an_order_waits_for_what_is_made_anew_though_an_old_one_lies_there(order, tmp_path):
    (tmp_path / "weights").write_text("7")
    order("a", "averaged", "translation")
    order("b", "weights", "averaged")
    perform_orders(tmp_path / "jobs")
    (tmp_path / "weights").write_text("new")
    assert [folder.name for folder, _ in ready_orders(tmp_path / "jobs")] == ["b"]
    perform_orders(tmp_path / "jobs")
    assert (tmp_path / "translation").read_text() == "new"


def test_one_that_fails_is_tried_once_leaves_the_others_and_tells_its_launcher_why(order, tmp_path, monkeypatch):
    monkeypatch.setenv("SLURMD_NODENAME", "the name that Slurm excludes")
    (tmp_path / "weights").write_text("7")
    (tmp_path / "folder").mkdir()
    broken, good = order("a", "folder", "copy"), order("b", "weights", "averaged")
    perform_orders(tmp_path / "jobs")
    assert done(good) and not done(broken)
    key = Command.read(broken / "command.json").key
    assert Failure.read(broken / "failed.json").node == "the name that Slurm excludes"
    with pytest.raises(UserError, match="omitting directory"):
        settled(broken, key)
    assert not settled(broken, key), "it is said once; whoever orders it again has it tried again"


def test_what_is_done_is_not_done_again_until_it_is_gone(order, tmp_path):
    (tmp_path / "weights").write_text("7")
    folder = order("a", "weights", "averaged")
    perform_orders(tmp_path / "jobs")
    order("a", "weights", "averaged")
    assert done(folder) and not list(ready_orders(tmp_path / "jobs"))
    (tmp_path / "averaged").unlink()
    assert len(list(ready_orders(tmp_path / "jobs"))) == 1


def test_a_training_is_over_when_its_end_is_noted_though_no_launcher_has_copied_the_note(order, tmp_path):
    order("a", "trained.json", "translation")
    assert not list(ready_orders(tmp_path / "jobs"))
    (tmp_path / "done.json").touch()
    assert len(list(ready_orders(tmp_path / "jobs"))) == 1


def test_a_stage_that_runs_alone_is_no_order(tmp_path):
    folder = tmp_path / "jobs/layer-times"
    folder.mkdir(parents=True)
    (folder / "command.json").write_text(json.dumps({"key": "old", "arguments": ["layer-times"], "outputs": ["x"]}))
    assert not list(ready_orders(tmp_path / "jobs"))


def test_one_that_is_killed_is_told_as_that_and_not_by_its_last_line_of_progress(tmp_path, monkeypatch):
    monkeypatch.setattr(orders, "PROGRAM", ["bash", "-c", "echo 1200/3003 sentences; kill -9 $$"])
    (tmp_path / "weights").write_text("7")
    place(tmp_path / "jobs/a", [], [tmp_path / "made"], [tmp_path / "weights"])
    perform_orders(tmp_path / "jobs")
    failure = json.loads((tmp_path / "jobs/a/failed.json").read_text())
    assert failure["error"] == "killed by SIGKILL (out of memory?) after saying: 1200/3003 sentences"
