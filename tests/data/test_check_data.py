"""`check-data` lists existing and missing files without fetching any; files without a source are an error."""

import logging
import random
import re
from pathlib import Path
from unittest.mock import Mock

import pytest
from bad_server import CONTENT, SHA256
from real_project import project_at

from pipeline.core.errors import UserError
from pipeline.core.provenance import ROOT
from pipeline.data.dataset import Source, load_dataset
from pipeline.data.fetch import download, transfer
from pipeline.data.fetch.download import fetch
from pipeline.papers.project import ProjectOptions
from pipeline.planning import data_files
from pipeline.planning.check_data import check, check_data
from pipeline.planning.data_files import fault_of_address, fetched_file, package_files


def source(*urls):
    return Source(urls=list(urls) or ["http://127.0.0.1:9/none"], sha256=SHA256, bytes=len(CONTENT))


def state(tmp_path, mirror=None, verify=False):
    return fetched_file("a.bin", source(), tmp_path / "downloads", mirror, verify)


def put(folder, content=b"", name="a.bin"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def test_check_data_distinguishes_states_of_a_file(tmp_path):
    downloads = tmp_path / "downloads"
    assert state(tmp_path).state == "missing" and state(tmp_path).to_fetch == len(CONTENT)
    put(downloads, CONTENT[:99], "a.bin.part")
    assert state(tmp_path).state == "partial" and state(tmp_path).to_fetch == len(CONTENT) - 99
    put(downloads, CONTENT[:-1])
    assert state(tmp_path).state == "damaged" and "expected 1280000" in state(tmp_path).note
    put(downloads, CONTENT[::-1])
    assert state(tmp_path).state == "damaged" and SHA256 in state(tmp_path).note
    put(tmp_path / "mirror", CONTENT)
    found = state(tmp_path, mirror=str(tmp_path / "mirror"))
    assert found.state == "verified" and found.is_here and not found.to_fetch


def test_a_large_file_is_hashed_once_and_only_when_asked_for(tmp_path, monkeypatch):
    hashed = []
    right = transfer.mismatch
    monkeypatch.setattr(transfer, "mismatch", lambda *arguments: hashed.append(arguments) or right(*arguments))
    monkeypatch.setattr(data_files, "HASHED_AT_ONCE", 10)
    put(tmp_path / "downloads", CONTENT)
    assert state(tmp_path).state == "present" and not hashed
    assert state(tmp_path, verify=True).state == "verified" and len(hashed) == 1
    fetch("a.bin", source(), tmp_path / "downloads", None)
    assert state(tmp_path).state == "verified" and len(hashed) == 1
    put(tmp_path / "downloads", CONTENT[::-1])  # same size, other time
    assert state(tmp_path, verify=True).state == "damaged" and len(hashed) == 2


def test_a_folder_that_can_not_be_written_is_read_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(download.VerifiedFile, "write", Mock(side_effect=UserError("can't write")))
    put(tmp_path / "downloads", CONTENT)
    assert state(tmp_path).state == "verified"


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        *(("good", None), ("no-ranges", None), ("moved", None), ("no-length", None)),
        *(("missing", "status 404"), ("short", "another file"), ("says-no-end", "another file")),
        *(("loop", "TooManyRedirects"), ("moved-nowhere", "ValueError"), ("page", "a web page")),
    ],
)
def test_an_address_is_asked_without_fetching(server, path, fault):
    found = fault_of_address(f"{server.url}/{path}", len(CONTENT))
    assert found is None if fault is None else fault in found


def with_source(project, wanted):
    """Return a project with every file of Multi30k from one source."""
    records, name = project.dataset_records, "multi30k-en-de"
    record = records[name].model_copy(update={"sources": dict.fromkeys(records[name].sources, wanted)})
    project.__dict__["dataset_records"] = records | {name: record}
    return project


def test_missing_files_with_an_address_fail_only_offline(server, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    project = with_source(project_at(tmp_path / "work"), source(f"{server.url}/good"))
    check(project, ["multi30k-en-de", "grammar-en-de"])
    assert "0 of 6 files are here; 7.7 MB to fetch" in caplog.text and "licence: " in caplog.text
    assert "good: answers" in caplog.text and "grammar-en-de: written by the grammar" in caplog.text
    assert caplog.messages[-1] == "2 datasets; 7.7 MB to fetch"
    with pytest.raises(UserError, match=r"multi30k-en-de: 6 files are missing: train\.en\.gz, .*`mirror:`"):
        check(project, ["multi30k-en-de"], offline=True)


def test_remedy_of_several_datasets_is_named_once_and_first(tmp_path):
    project = project_at(tmp_path / "work", scale="small")
    with pytest.raises(UserError) as raised:
        check(project, ["fsdd", "craft", "multi30k-en-de"], offline=True)
    summary, *listed, other = str(raised.value).split("\n")
    assert summary.startswith("files of 2 datasets are missing or damaged; check the network, ")
    assert listed[0] == "  fsdd: 2 files are missing: speech/fsdd.tar.gz, speech/fsdd.tsv"
    assert len(listed) == 2 and listed[1].startswith("  multi30k-en-de: 6 files are missing: multi30k/train.en.gz, ")
    assert other.startswith("craft: ") and str(raised.value).count("check the network") == 1


def test_damaged_mirror_file_is_reported_with_its_checksum(server, tmp_path):
    mirror, name = tmp_path / "mirror", "train.en.gz"
    put(mirror, CONTENT[::-1], name)
    project = with_source(project_at(tmp_path / "work", mirror=str(mirror)), source(f"{server.url}/missing"))
    with pytest.raises(UserError) as raised:
        check(project, ["multi30k-en-de"])
    damaged, missing = str(raised.value).split("\n")
    assert f": damaged: {mirror / name}: " in damaged and SHA256 in damaged
    assert damaged.endswith("; replace them with intact copies")
    assert "5 files are missing: " in missing and name not in missing
    assert re.search(r"; check the network, .*`snakemake .*check_data` lists their addresses$", missing)


def test_a_changed_file_of_the_user_is_restored_or_recorded(tmp_path):
    put(tmp_path, CONTENT[::-1])
    own = Source(path=str(tmp_path / "a.bin"), sha256=SHA256, bytes=len(CONTENT))
    said = r": changed: .*a\.bin: .*; restore the old files, or write .*sha256 .*workflow/datasets/multi30k-en-de\.yaml"
    with pytest.raises(UserError, match=said):
        check(with_source(project_at(tmp_path / "work"), own), ["multi30k-en-de"])


def test_extracted_text_needs_no_source_files(tmp_path):
    project = project_at(tmp_path / "work")
    put(project.layout.corpus("multi30k-en-de"), b"", "raw.done")
    check(project, ["multi30k-en-de"], offline=True)


def test_a_licensed_package_is_looked_at_file_by_file(tmp_path):
    wsj = load_dataset(ROOT / "workflow/datasets/wsj.yaml")
    files = package_files(wsj, {"LDC99T42": str(tmp_path)})
    assert len(files) > 2000 and {file.state for file in files} == {"missing"}
    *others, present = (Path(file.note) for file in files)
    put(present.parent, name=present.name)
    project = project_at(tmp_path / "work", scale="paper", licensed={"LDC99T42": str(tmp_path)})
    said = rf"wsj: {len(others)} files of LDC99T42 are missing: .*wsj_0200.*`licensed:`"
    with pytest.raises(UserError, match=said):
        check(project, ["wsj"])
    for path in others:
        put(path.parent, name=path.name)
    check(project, ["wsj"])


def test_documents_stand_for_the_file_that_is_joined_from_them(tmp_path):
    craft = load_dataset(ROOT / "workflow/datasets/craft.yaml")
    name, wanted = next(iter(craft.sources.items()))
    found = fetched_file(name, wanted, tmp_path, None, verify=False)
    assert found.state == "missing" and any("githubusercontent" in url for url in found.addresses)
    with pytest.raises(UserError, match=r"craft: .*published as single documents; .*scale=smoke -- fetch`.*downloads"):
        check(project_at(tmp_path / "work"), ["craft"], offline=True)
    for document in wanted.documents.names:
        put(tmp_path / f"{name}.documents", b"", document)
    assert fetched_file(name, wanted, tmp_path, None, verify=False).state == "present"


def test_unset_package_is_reported_with_its_stand_in(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    check(project_at(tmp_path / "work", scale="paper"), [])
    assert "wsj: needs LDC99T42" in caplog.text and "craft stands in" in caplog.text
    assert "licensed: {LDC99T42: FOLDER}" in caplog.text


def test_dataset_without_some_of_its_packages_is_warned_of(tmp_path):
    packages = list(load_dataset(ROOT / "workflow/datasets/nist-zh-en.yaml").packages)
    random.shuffle(packages)
    for count in (0, random.randrange(1, len(packages)), len(packages)):
        project = project_at(tmp_path / "work", scale="paper", licensed=dict.fromkeys(packages[:count], str(tmp_path)))
        project.scale = project.scale.model_copy(update={"datasets": {"x": "grammar-en-de"} | project.scale.datasets})
        warnings = list(project.partly_licensed())
        assert len(warnings) == (0 < count < len(packages))
        for warning in warnings:
            assert "\n" not in warning and warning.endswith("so news-un-zh-en is used instead of nist-zh-en")
            assert {package for package in packages if package in warning} == set(packages[count:])


def test_command_check_data_warns_of_missing_packages(tmp_path, caplog):
    settings = ("scale=paper", f"work={tmp_path}", f"licensed={{ldc-zh-en: {tmp_path}}}", "mirror=null")
    check_data(dataset=("grammar-text-full",), offline=True, project=ProjectOptions(ROOT, settings))
    assert "licensed: lacks LDC2010T11, " in caplog.text


def test_check_data_names_files_from_a_mirror_or_the_user(tmp_path):
    project = project_at(tmp_path / "work", scale="demo")
    with pytest.raises(UserError, match=r"own-text-full, whose folder config\.yaml does not name.*`licensed:`"):
        check(project, ["own-text-full"], offline=True)
    check(project, ["grammar-speech-source", "grammar-text-full"], offline=True)
