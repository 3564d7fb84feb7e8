"""The name of a folder depends only on the content of its run or corpus."""

import os
import re

import pytest
import yaml
from fabricated import folder_of
from real_project import real_project

from pipeline.core.artifacts import RunId
from pipeline.core.digests import sha256_file
from pipeline.core.provenance import ROOT
from pipeline.data.dataset import load_dataset
from pipeline.papers.content import CorpusContents, FileDigests

RUN = RunId("attention", "base", "grammar-smoke-en-de", 1)
FUSED = RunId("coldfusion", "CF4", "grammar-smoke-speech-source", 2)


@pytest.fixture(scope="module")
def project():
    return real_project({"scale": "smoke", "work": "work"})


def names(project):
    folders = (folder_of(project, RUN), folder_of(project, FUSED), project.layout.corpus(RUN.dataset))
    return [folder.name for folder in folders]


def test_folder_name_is_readable_and_ends_in_eight_digits(project):
    run, corpus = folder_of(project, RUN), project.layout.corpus(RUN.dataset)
    assert re.fullmatch(r"work/smoke/runs/attention/base/grammar-smoke-en-de/seed1-[0-9a-f]{8}", str(run))
    assert re.fullmatch(r"work/corpora/grammar-smoke-en-de-[0-9a-f]{8}", str(corpus))


DATASET, BASE = "workflow/datasets/grammar-smoke-en-de.yaml", "workflow/papers/attention/paper.yaml"
CHANGES = [
    (
        [
            (DATASET, "title", "Another title"),
            (BASE, "systems|base|description", "Another description"),
            (BASE, "systems|base|training|keep_checkpoints", 19),
            (BASE, "systems|base|training|tensorboard", True),
            (BASE, "systems|base|training|cuda_graphs", False),
        ],
        "",
    ),
    ([(DATASET, "generator|seed", 99)], "run corpus"),
    ([(BASE, "systems|base|model|dropout", 0.2)], "run"),
    ([("workflow/papers/coldfusion/paper.yaml", "systems|lm-source|model|dropout", 0.2)], "fused"),
    ([("workflow/datasets/grammar-smoke-text-full.yaml", "max_characters", 61)], "fused"),
]


@pytest.mark.parametrize(("changes", "differ"), CHANGES)
def test_settings_change_the_folder_but_descriptions_do_not(project, edited, changes, differ):
    for change in changes:
        edited.put(*change)
    before, after = names(project), names(edited.load(scale="smoke", work="work"))
    found = [kind for kind, old, new in zip(("run", "fused", "corpus"), before, after, strict=True) if old != new]
    assert found == differ.split()


def test_work_folder_is_in_no_name_and_no_run_file(project):
    there = real_project({"scale": "smoke", "work": "/scratch/elsewhere"})
    assert names(project) == names(there)
    assert project.run_yaml(FUSED) == there.run_yaml(FUSED)


def test_a_specification_names_folders_as_seen_from_its_own(project):
    folder, spec = folder_of(project, FUSED), project.run_yaml(FUSED)
    assert os.path.normpath(folder / spec["corpus"]) == str(project.layout.corpus(FUSED.dataset) / "encoded")
    (language_model,) = (run for run in project.weight_sources(FUSED).values() if "lm" in run.system)
    assert os.path.normpath(folder / spec["language_model"]["run"]) == str(folder_of(project, language_model))


def changed_contents(dataset, path, folders=None) -> list[bool]:
    """Return whether the content of a corpus changes after an access, and after a change, and if that is undone."""
    text = path.read_text()

    def content():
        return CorpusContents(path.with_name("notes.json"), folders or {}).of(dataset)

    before = content()
    os.utime(path, (1, 1))
    found = [content() != before]
    for written in ("another line\n", text):
        path.write_text(written)
        found.append(content() != before)
    return found


def test_files_of_ones_own_count_by_what_is_in_them(tmp_path):
    dataset = load_dataset(ROOT / "workflow/datasets/own-text-source.yaml")
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.txt").write_text(f"a line of {split}\n")
    assert changed_contents(dataset, tmp_path / "train.txt", {dataset.package: str(tmp_path)}) == [False, True, False]


def test_edited_own_text_changes_the_corpus_despite_its_checksum(tmp_path):
    text = {side: tmp_path / f"text.{side}" for side in ("en", "de")}
    for side, path in text.items():
        path.write_text(f"a line of {side}\n")
    sources = {path.name: {"path": str(path), "sha256": sha256_file(path)} for path in text.values()}
    record = yaml.safe_load((ROOT / "workflow/datasets/multi30k-en-de.yaml").read_text(encoding="utf-8"))
    part = {"src": {"source": "text.en"}, "tgt": {"source": "text.de"}, "lines": 1}
    splits = {split: {"parts": [part]} for split in ("train", "dev", "test")}
    record |= {"sources": sources, "splits": splits, "expected": {}, "licence": "one's own"}
    for name in ("datasets", "files"):
        (tmp_path / name).mkdir()
    (tmp_path / "datasets/mine.yaml").write_text(yaml.safe_dump(record))
    dataset = load_dataset(tmp_path / "datasets/mine.yaml")
    assert changed_contents(dataset, text["en"]) == [False, True, False]


def test_own_file_is_rehashed_if_its_size_or_time_changes(tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr("pipeline.papers.content.sha256_file", lambda path: read.append(path) or "digest")
    path = tmp_path / "own.txt"
    path.write_text("a")
    for _ in range(2):
        files = FileDigests(tmp_path / "notes.json")
        files.digest(path)
        files.write()
    assert read == [path]
    path.write_text("ab")
    FileDigests(tmp_path / "notes.json").digest(path)
    assert read == [path, path]
