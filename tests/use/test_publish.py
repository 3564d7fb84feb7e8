"""Packed models are uploaded whole, with a card that the Hub reads, and never against the licence of their data."""

import errno
import json
import os
import re
import shutil
import sys
import tarfile
from itertools import pairwise
from types import SimpleNamespace
from unittest.mock import Mock, create_autospec

import pytest
import yaml
from copied_project import ROOT
from markdown_it import MarkdownIt
from packed_model import pack, write_sums

from pipeline.core.records.outputs import MetricValue
from pipeline.models.language_model.settings import LanguageModelConfig
from reprise.__main__ import main
from reprise.portable import PortableModel
from reprise.scaffold import model_card

hub = pytest.importorskip("huggingface_hub", reason="needs the extra `hub`")
faults = pytest.importorskip("huggingface_hub.errors")

NAME = "me/model"


@pytest.fixture
def api(monkeypatch):
    """Return a client of the Hub with its signatures and without a network, which keeps the uploaded files."""
    client = create_autospec(hub.HfApi, instance=True)
    client.create_repo.return_value = f"https://huggingface.co/{NAME}"
    client.uploaded = {}

    def keep(*, folder_path, allow_patterns, **_):
        client.uploaded |= {name: (folder_path / name).read_bytes() for name in allow_patterns}

    client.upload_folder.side_effect = keep
    monkeypatch.setattr(hub, "HfApi", lambda: client)
    return client


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    folder = pack(tmp_path_factory.mktemp("packed"))
    (folder / "README.md").write_text("A card\n")
    write_sums(folder)
    return folder


@pytest.fixture
def folder(packed, tmp_path):
    return shutil.copytree(packed, tmp_path / "model")


@pytest.mark.parametrize("archive", [False, True])
def test_every_packed_file_is_uploaded_and_no_other(folder, archive, api, tmp_path, capsys):
    given = folder
    if archive:
        given = tmp_path / "model.tar"
        with tarfile.open(given, "w") as tar:
            tar.add(folder, arcname="model")
    expected = {path.name: path.read_bytes() for path in folder.iterdir()}
    if not archive:
        (folder / "notes.txt").write_text("mine")
    assert main(["publish", str(given), NAME]) == 0
    assert api.uploaded == expected
    assert capsys.readouterr().out == f"https://huggingface.co/{NAME}\n"
    api.create_repo.assert_called_once_with(NAME, private=False, exist_ok=True)


def test_publish_needs_a_private_repository_for_restricted_data(folder, api, refused):
    record = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(record | {"redistributable": False}))
    write_sums(folder)
    assert "may not be redistributed" in refused("publish", folder, NAME) and not api.create_repo.called
    api.model_info.return_value = SimpleNamespace(private=False)  # it was there before
    assert f"{NAME}: is public" in refused("publish", folder, NAME, "--private") and not api.uploaded
    api.model_info.return_value = SimpleNamespace(private=True)
    assert main(["publish", str(folder), NAME, "--private"]) == 0
    assert api.uploaded


def test_damaged_model_is_not_uploaded(folder, api, refused):
    (folder / "README.md").write_text("Another card\n")
    assert "differs from the packed file" in refused("publish", folder, NAME) and not api.create_repo.called


@pytest.mark.parametrize("name", ["model", "me/model/more", "me/mo del"])
def test_bad_name_of_a_repository_is_refused(folder, api, name, refused):
    assert "write NAME/REPOSITORY" in refused("publish", folder, name) and not api.create_repo.called


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (faults.LocalTokenNotFoundError("no token"), "no token; is HF_TOKEN set"),
        (faults.HFValidationError("bad name"), "bad name; is HF_TOKEN set"),
        (faults.HfHubHTTPError("refused", response=Mock()), "refused; is HF_TOKEN set"),
        (TimeoutError("no answer"), "no answer; is the Hub reachable"),
        (ConnectionError("no route"), "no route; is the Hub reachable"),
        (faults.HTTPError("no route"), "no route; is the Hub reachable"),
    ],
)
def test_failed_upload_is_one_line_with_the_remedy(folder, api, error, remedy, refused):
    api.create_repo.side_effect = error
    assert f"error: {NAME}: not uploaded: {remedy}" in refused("publish", folder, NAME)


def test_full_disk_is_not_taken_for_an_unreachable_hub(folder, api, refused):
    api.upload_folder.side_effect = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "cache")
    said = refused("publish", folder, NAME)
    assert "error: cache: No space left on device" in said and "Hub" not in said


def test_missing_extra_is_named(folder, monkeypatch, refused):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert "`pip install -e '.[hub]'` installs it" in refused("publish", folder, NAME)


def test_signature_of_a_score_stays_in_its_cell_of_the_card(packed):
    signature = "text:moses|nrefs:1|case:lc"
    value = MetricValue(value=27.3, low=26.0, high=28.5, signature=signature)
    record = PortableModel.read(packed / "model.json").model_copy(update={"scores": {"news": {"bleu_paper": value}}})
    tokens = MarkdownIt("commonmark").enable("table").parse(model_card(ROOT, record, "model"))
    cells = [text.children for kind, text in pairwise(tokens) if kind.type == "td_open"]
    shown = [(part.type, part.content) for cell in cells for part in cell]
    texts = ["news", "bleu_paper", "27.30", "26.00 to 28.50"]
    assert shown == [*(("text", text) for text in texts), ("code_inline", signature)]


@pytest.mark.parametrize(
    ("prepared", "task", "languages"),
    [
        ({"form": "sentences", "src": "no", "tgt": "de"}, "translation", ["de", "no"]),
        ({"form": "speech", "src": "speech", "tgt": "en"}, "automatic-speech-recognition", ["en"]),
        ({"form": "trees", "src": "en", "tgt": "brackets"}, None, ["en"]),
    ],
)
def test_card_begins_with_what_the_hub_searches_by(tmp_path, prepared, task, languages):
    record = PortableModel.read(pack(tmp_path, **prepared) / "model.json")
    _, header, text = model_card(ROOT, record, "model").split("---\n", 2)
    facts = yaml.safe_load(header)
    assert (facts["library_name"], facts.get("pipeline_tag"), facts["language"]) == ("reprise", task, languages)
    assert facts["tags"] == ["transformer", "attention"]
    assert text.startswith("# toy") and "data may be redistributed" in text
    restricted = record.model_copy(update={"redistributable": False})
    card = model_card(ROOT, restricted, "my model")
    assert "data may not be redistributed" in card and re.search(r"    reprise \w+ 'my model' FILE\n", card)


def test_card_of_a_language_model_names_no_command(packed):
    """No command reads a language model alone, even one of the target side of sentence pairs."""
    settings = LanguageModelConfig(architecture="language_model", num_layers=1, embedding_width=4, hidden_width=8)
    record = PortableModel.read(packed / "model.json")
    record = record.model_copy(update={"spec": record.spec.model_copy(update={"model": settings})})
    _, header, text = model_card(ROOT, record, "my model").split("---\n", 2)
    facts = yaml.safe_load(header)
    assert "pipeline_tag" not in facts and facts["language"] == ["de"]
    assert "language_model, de, of" in text and "    reprise.open_run('my model').trained.model" in text
    assert "reprise translate" not in text
