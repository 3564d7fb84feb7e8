"""Folders of earlier versions, whose names did not say what is in them, are found again."""

import fcntl
import json
import os

import pytest
import yaml
from made_records import parallel_corpus, trained_run
from planning_project import project_at

from pipeline.config import RunSpec
from pipeline.core.artifacts import RunId
from pipeline.core.errors import UserError
from pipeline.core.json_file import read_json
from pipeline.core.sha256 import sha256_json
from pipeline.training.key import run_key
from reprise.store.adopt import adopt

BASE = RunId("coldfusion", "lm-source", "grammar-smoke-text-full", 1)
FUSED = RunId("coldfusion", "CF4", "grammar-smoke-speech-source", 1)


class OldStore:
    """What an earlier version left: names without contents, paths as seen from the project, keys that hold these."""

    def __init__(self, work):
        self.work, self.project = work, project_at(work)
        self.keys = {}

    def folder(self, run):
        return self.work / "smoke/runs" / run.folder

    def train(self, run, finished=True):
        """The folder of a run and of its corpus; the runs that it takes weights from are to be there."""
        corpus = self.work / "corpora" / run.dataset / "encoded"
        parallel_corpus(7, digest=f"digest of {run.dataset}").write(corpus / "corpus.json")
        places = {other.folder: str(self.folder(other)) for other in self.project.taken(run).values()}
        spec = self.project.run_spec(run).placed(lambda name: places.get(name, str(corpus)))
        self.folder(run).mkdir(parents=True)
        (self.folder(run) / "run.yaml").write_text(yaml.safe_dump(spec.model_dump()))
        self.keys[run] = self.key(spec, run)
        if finished:
            trained_run(key=self.keys[run]).write(self.folder(run) / "done.json")
        return spec

    def key(self, spec: RunSpec, run):
        """As earlier versions made it."""
        names = {"language_model": spec.language_model, "initial": spec.initial}
        used = dict(
            zip((name for name, value in names.items() if value), self.project.taken(run).values(), strict=True)
        )
        content = {
            "spec": spec.model_dump(mode="json", exclude_defaults=True),
            "corpus": f"digest of {run.dataset}",
        }
        parts = {name: self.keys[other] for name, other in used.items()}
        return sha256_json(content | ({"parts": parts} if parts else {}))


@pytest.fixture
def store(tmp_path):
    return OldStore(tmp_path)


def chain(project, run):
    """The run after those that it takes weights from."""
    return [one for other in project.taken(run).values() for one in chain(project, other)] + [run]


def test_runs_and_corpora_are_renamed_and_keep_the_keys_that_their_files_carry(store):
    runs = list(dict.fromkeys(chain(store.project, FUSED)))
    assert len(runs) > 1
    for run in runs:
        store.train(run)
    adopt(store.project)
    for run in runs:
        folder = store.project.layout.run(run)
        assert not store.folder(run).exists()
        assert run_key(folder) == store.keys[run] == read_json(folder / "done.json")["key"]
        spec = yaml.safe_load((folder / "run.yaml").read_text())
        assert spec == json.loads(json.dumps(store.project.run_yaml(run)))


def test_an_unfinished_run_is_adopted_too_and_nothing_happens_twice(store):
    store.train(BASE, finished=False)
    adopt(store.project)
    before = {path: path.stat().st_mtime_ns for path in store.work.rglob("*")}
    adopt(store.project)
    assert {path: path.stat().st_mtime_ns for path in store.work.rglob("*")} == before
    assert run_key(store.project.layout.run(BASE)) == store.keys[BASE]


def test_the_specification_keeps_its_time_so_that_nothing_is_trained_anew(store):
    store.train(BASE)
    os.utime(store.folder(BASE) / "run.yaml", (1000, 1000))
    adopt(store.project)
    assert (store.project.layout.run(BASE) / "run.yaml").stat().st_mtime == 1000


def test_a_run_of_other_settings_than_todays_gets_a_name_of_its_own(store):
    spec = store.train(BASE, finished=False)
    other = spec.model_copy(update={"training": spec.training.model_copy(update={"max_steps": 1})})
    (store.folder(BASE) / "run.yaml").write_text(yaml.safe_dump(other.model_dump()))
    adopt(store.project)
    (adopted,) = store.folder(BASE).parent.glob("seed1-*")
    assert adopted != store.project.layout.run(BASE)


def test_a_run_in_work_or_whose_specification_changed_is_left_as_it_is(store, caplog):
    store.train(BASE)
    with open(store.folder(BASE) / "run.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        adopt(store.project)
    assert store.folder(BASE).exists() and "works on it" in caplog.text


def test_a_run_whose_specification_is_not_what_it_was_trained_with_is_left_as_it_is(store, caplog):
    store.train(BASE)
    trained_run(key="another").write(store.folder(BASE) / "done.json")
    adopt(store.project)
    assert store.folder(BASE).exists() and "run.yaml is not what it was trained with" in caplog.text


def test_a_run_whose_language_model_is_left_is_left_too(store, caplog):
    *others, last = list(dict.fromkeys(chain(store.project, FUSED)))
    for run in (*others, last):
        store.train(run)
    trained_run(key="another").write(store.folder(others[0]) / "done.json")
    adopt(store.project)
    assert store.folder(others[0]).exists() and store.folder(last).exists()
    assert "whose weights it takes" in caplog.text


@pytest.mark.parametrize("step", range(8))
def test_an_adoption_that_is_killed_after_any_of_its_steps_is_ended_by_the_next(store, monkeypatch, step):
    runs = list(dict.fromkeys(chain(store.project, FUSED)))
    for run in runs:
        store.train(run)
    made, replace = [], os.replace

    def killed(*args, **options):
        made.append(args)
        if len(made) > step:
            raise KeyboardInterrupt
        return replace(*args, **options)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "replace", killed)
        patch.setattr(os, "rename", killed)
        adopt(store.project)
    store.project.forget()
    adopt(store.project)
    for run in runs:
        folder = store.project.layout.run(run)
        assert not store.folder(run).exists()
        assert run_key(folder) == store.keys[run]
        assert yaml.safe_load((folder / "run.yaml").read_text()) == json.loads(json.dumps(store.project.run_yaml(run)))


def test_a_store_that_may_not_be_written_to_is_told_in_a_line(store, monkeypatch):
    store.train(BASE)

    def refused(*args, **options):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "rename", refused)
    with pytest.raises(UserError, match=r"is to be renamed .*Read-only file system"):
        adopt(store.project)
