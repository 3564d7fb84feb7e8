"""Packed models are uploaded whole, with a card that the Hub reads, and never against the licence of their data."""

import errno
import json
import os
import sys
import tarfile
from types import SimpleNamespace
from unittest.mock import create_autospec

import pytest
import yaml
from packed_model import pack, write_sums

from reprise.__main__ import main

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


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model").mkdir()
    folder = pack(tmp_path / "model")
    (folder / "README.md").write_text("A card\n")
    write_sums(folder)
    return folder


def forbid(folder) -> None:
    """Mark the data of a packed model as not to be passed on."""
    record = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(record | {"redistributable": False}))
    write_sums(folder)


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


def test_publish_needs_a_private_repository_for_restricted_data(folder, api, capsys):
    forbid(folder)
    assert main(["publish", str(folder), NAME]) == 1
    assert "may not be passed on" in capsys.readouterr().err and not api.create_repo.called
    api.model_info.return_value = SimpleNamespace(private=False)  # it was there before
    assert main(["publish", str(folder), NAME, "--private"]) == 1
    assert f"{NAME}: is public" in capsys.readouterr().err and not api.uploaded
    api.model_info.return_value = SimpleNamespace(private=True)
    assert main(["publish", str(folder), NAME, "--private"]) == 0
    assert api.uploaded


def test_damaged_model_is_not_uploaded(folder, api, capsys):
    (folder / "README.md").write_text("Another card\n")
    assert main(["publish", str(folder), NAME]) == 1
    assert "differs from the packed file" in capsys.readouterr().err and not api.create_repo.called


@pytest.mark.parametrize("name", ["model", "me/model/more", "me/mo del"])
def test_bad_name_of_a_repository_is_refused(folder, api, name, capsys):
    assert main(["publish", str(folder), name]) == 1
    assert "write NAME/REPOSITORY" in capsys.readouterr().err and not api.create_repo.called


def test_refusal_of_the_hub_is_one_line_with_the_remedy(folder, api, capsys):
    api.create_repo.side_effect = faults.LocalTokenNotFoundError("no token")
    assert main(["publish", str(folder), NAME]) == 1
    assert f"error: {NAME}: not uploaded: no token; is HF_TOKEN set" in capsys.readouterr().err


@pytest.mark.parametrize("error", [ConnectionError("no route"), faults.HTTPError("no route")])
def test_unreachable_hub_is_one_line_with_the_remedy(folder, api, error, capsys):
    api.create_repo.side_effect = error
    assert main(["publish", str(folder), NAME]) == 1
    assert f"error: {NAME}: not uploaded: no route; is the Hub reachable" in capsys.readouterr().err


def test_full_disk_is_not_taken_for_an_unreachable_hub(folder, api, capsys):
    api.upload_folder.side_effect = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "cache")
    assert main(["publish", str(folder), NAME]) == 1
    assert "error: cache: No space left on device" in (said := capsys.readouterr().err) and "Hub" not in said


def test_missing_extra_is_named(folder, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert main(["publish", str(folder), NAME]) == 1
    assert "`pip install '.[hub]'` installs it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("prepared", "task", "languages"),
    [
        ({"form": "sentences", "src": "no", "tgt": "de"}, "translation", ["de", "no"]),
        ({"form": "speech", "src": "speech", "tgt": "en"}, "automatic-speech-recognition", ["en"]),
        ({"form": "trees", "src": "en", "tgt": "brackets"}, None, ["en"]),
    ],
)
def test_card_begins_with_what_the_hub_searches_by(tmp_path, prepared, task, languages):
    from copied_project import ROOT

    from reprise.portable import PortableModel
    from reprise.scaffold import model_card

    record = PortableModel.read(pack(tmp_path, **prepared) / "model.json")
    _, header, text = model_card(ROOT, record, "model").split("---\n", 2)
    facts = yaml.safe_load(header)
    assert (facts["library_name"], facts.get("pipeline_tag"), facts["language"]) == ("reprise", task, languages)
    assert facts["tags"] == ["transformer", "attention"] and text.startswith("# toy")
