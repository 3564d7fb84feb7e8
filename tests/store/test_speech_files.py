"""`verify` checks all files of a speech corpus, also those beside the encoded ones."""

import random

import pytest

from pipeline.core.artifacts import Encoded
from pipeline.core.digests import ROOT, recording_digests, write_note
from pipeline.core.files import atomic_write
from pipeline.data.fetch.raw_text import write_raw_mark
from pipeline.papers.project import load_project
from pipeline.workflow.graph import Graph
from reprise.product_checks import Inspection

DATASET = "grammar-smoke-speech-source"
FILES = [f"prepared/{name}" for name in ("test.en", "test.speakers", "train.en", "report.json")]
FILES += [f"encoded/{name}" for name in ("corpus.json", "test.frames")] + ["manifests/test.tsv", "spoken.json"]


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """Return the folder of a speech corpus with a noted file of each kind, and a function that inspects it."""
    monkeypatch.chdir(tmp_path)
    graph = Graph(load_project(ROOT, {"scale": "smoke", "work": "work"}))
    folder = graph.project.layout.corpus(DATASET)

    def wrong():
        found = Inspection(graph, [Encoded(DATASET)]).found.values()
        return {check.path.relative_to(folder): check.state for finding in found for check in finding.checks}

    with recording_digests():
        with atomic_write(folder / "raw/test.en") as file:
            file.write("a\n")
        write_raw_mark(folder)
    for name in FILES:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text('"a"')
        write_note(folder / name)
    return folder, lambda: {str(path): state for path, state in wrong().items() if state != "good"}


def test_damaged_text_beside_speech_is_found(corpus):
    folder, wrong = corpus
    before = wrong()  # files of no more than one word are not those records that they stand for
    assert not {name for name in before if name.startswith("prepared/") and name != "prepared/report.json"}
    name = random.choice(["prepared/test.en", "prepared/test.speakers", "prepared/train.en"])
    (folder / name).write_text("b")
    assert wrong() == before | {name: "damaged"}


def test_freed_training_text_of_speech_is_not_missed(corpus):
    folder, wrong = corpus
    before = wrong()
    (folder / "prepared/train.en").unlink()
    assert wrong() == before
    (folder / "prepared/test.en").unlink()
    assert wrong() == before | {"prepared/test.en": "missing"}


def test_lost_raw_file_without_note_is_missed(corpus):
    folder, wrong = corpus
    before = wrong()
    (folder / "raw/test.en").unlink()
    (folder / "raw/.digests/test.en").unlink()
    assert wrong() == before | {"raw/test.en": "missing"}
