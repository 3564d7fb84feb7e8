"""Downloads are verified, retried and taken from the next place; a failure lists every file and every place."""

import gzip
import hashlib
import io
import json
import tarfile
import time
import zipfile

import pytest
from bad_server import CONTENT, serving
from toy_corpus import record

from pipeline.core.errors import UserError
from pipeline.core.schema import validate
from pipeline.data.dataset import Dataset, Source
from pipeline.data.fetch import transfer
from pipeline.data.fetch.archives import unpack
from pipeline.data.fetch.download import expand_variables, fetch, fetch_all
from pipeline.data.fetch.raw_text import write_raw_splits
from pipeline.stages import invoke, parse

SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(transfer, "FIRST_PAUSE_S", 0.0)
    with serving() as running:
        yield running


def source(*urls, **changes):
    return Source(**{"urls": list(urls) or ["http://127.0.0.1:9/none"], "sha256": SHA256} | changes)


@pytest.mark.parametrize("path", ["good", "flaky", "moved"])
def test_a_file_is_fetched_despite_refusals_and_redirects(server, tmp_path, path):
    found = fetch("a.bin", source(f"{server.url}/{path}"), tmp_path, None)
    assert found == tmp_path / "a.bin" and found.read_bytes() == CONTENT
    assert {item.name for item in tmp_path.iterdir()} == {"a.bin", ".verified"}


def test_a_verified_file_is_not_fetched_again(server, tmp_path):
    for _ in range(2):
        fetch("a.bin", source(f"{server.url}/good"), tmp_path, None)
    assert server.asked == ["good"]


@pytest.mark.parametrize("path", ["altered", "short", "says-less", "missing"])
def test_a_bad_address_is_named_and_the_next_one_tried(server, tmp_path, path):
    urls = [f"{server.url}/{path}", f"{server.url}/good"]
    assert fetch("a.bin", source(*urls), tmp_path, None).read_bytes() == CONTENT
    (tmp_path / "a.bin").unlink()
    with pytest.raises(UserError, match=rf"a\.bin: .*/{path}") as raised:
        fetch("a.bin", source(urls[0]), tmp_path, None)
    assert path != "altered" or SHA256 in str(raised.value)
    assert not (tmp_path / "a.bin").exists()


def test_md5_is_checked_where_there_is_no_sha256(server, tmp_path):
    right, wrong = hashlib.md5(CONTENT).hexdigest(), "0" * 32
    assert fetch("a.bin", source(f"{server.url}/good", sha256=None, md5=right), tmp_path, None).exists()
    with pytest.raises(UserError, match=f"{wrong}.*{right}"):
        fetch("b.bin", source(f"{server.url}/good", sha256=None, md5=wrong), tmp_path, None)


def test_a_mirror_folder_is_used_in_place_and_before_the_network(server, tmp_path):
    (tmp_path / "mirror/set").mkdir(parents=True)
    (tmp_path / "mirror/set/a.bin").write_bytes(CONTENT)
    wanted = source(f"{server.url}/good", mirror="set/a.bin")
    assert fetch("a.bin", wanted, tmp_path / "downloads", str(tmp_path / "mirror")) == tmp_path / "mirror/set/a.bin"
    assert not server.asked


def test_a_mirror_url_is_tried_first(server, tmp_path):
    wanted = source(f"{server.url}/missing", mirror="good")
    assert fetch("a.bin", wanted, tmp_path, server.url).read_bytes() == CONTENT
    assert server.asked == ["good"]


def test_a_damaged_mirror_file_is_reported_and_not_used(server, tmp_path):
    (tmp_path / "a.bin").write_bytes(CONTENT[1:])
    with pytest.raises(UserError, match=f"sha256 expected {SHA256}, got"):
        fetch("a.bin", source(f"{server.url}/missing"), tmp_path / "downloads", str(tmp_path))
    wanted = source(f"{server.url}/missing", bytes=len(CONTENT))
    with pytest.raises(UserError, match=f"{len(CONTENT) - 1} bytes, expected {len(CONTENT)}"):
        fetch("a.bin", wanted, tmp_path / "downloads", str(tmp_path))


def test_all_missing_files_are_listed_at_once(server, tmp_path):
    dataset = toy_download({"a.gz": b"", "b.gz": b"", "c.gz": b""}, server.url + "/missing")
    (tmp_path / "b.gz").write_bytes(b"")
    with pytest.raises(UserError, match="2 of 3 files are missing") as raised:
        fetch_all(dataset, tmp_path, None)
    message = str(raised.value)
    assert "a.gz: " in message and "c.gz: " in message and "b.gz: " not in message and "`mirror:`" in message


def toy_download(files: dict[str, bytes], url: str = "http://127.0.0.1:9/none", splits: dict | None = None):
    sides = [{"source": name} for name in files]
    split = {"parts": [{"src": sides[0], "tgt": side} for side in sides]}
    content = record(
        kind="download",
        sources={name: {"urls": [url], "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()},
        splits=splits or dict.fromkeys(("train", "dev", "test"), split),
    )
    del content["generator"]
    return validate(Dataset, content, "toy.yaml")


def packed(members: dict[str, bytes], mode: str) -> bytes:
    buffer = io.BytesIO()
    if mode == "zip":
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return buffer.getvalue()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


SGM = b"""<srcset setid="x" srclang="any">
<doc docid="1"><p>
<seg id="1"> One &amp; two . </seg>
<seg id="2">Three\r
lines.</seg>
</p></doc></srcset>
"""
MEMBERS = {
    "dir/other.en": b"not wanted\n" * 1000,
    "./dir/train.en": b"a\rb\nc d\n",
    "dir/train.de": "ä\u2028\nö".encode(),
    "dir/more.en.gz": gzip.compress(b"e\n"),
    "dir/more.de.gz": gzip.compress(b"f\n"),
    "test/x-src.en.sgm": SGM,
    "test/x-ref.de.sgm": SGM.replace(b"One", b"Eins"),
}


def archive_dataset(data: bytes, name: str, members: dict | None = None, lines: int | None = None):
    def part(src, tgt, **more):
        return {"src": {"source": name, "member": src}, "tgt": {"source": name, "member": tgt}} | more

    train = [part("dir/train.en", "dir/train.de", lines=lines), part("dir/more.en.gz", "dir/more.de.gz")]
    test = {"parts": [part("test/x-src.en.sgm", "test/x-ref.de.sgm")]}
    return toy_download({name: data}, splits={"train": {"parts": train}, "dev": test, "test": test} | (members or {}))


@pytest.mark.parametrize(
    ("name", "mode"),
    [("a.tgz", "w:gz"), ("a.tar", "w"), ("a.tar.bz2", "w:bz2"), ("a.tar.xz", "w:xz"), ("a.zip", "zip")],
)
def test_only_named_members_are_written_as_raw_splits(tmp_path, name, mode):
    data = packed(MEMBERS, mode)
    (tmp_path / name).write_bytes(data)
    write_raw_splits(archive_dataset(data, name, lines=2), {name: tmp_path / name}, tmp_path / "corpus")
    raw = tmp_path / "corpus/raw"
    assert (raw / "train.en").read_bytes() == b"a\rb\nc d\ne\n"
    assert (raw / "train.de").read_bytes() == "ä\u2028\nö\nf\n".encode()
    assert (raw / "test.en").read_bytes() == b"One &amp; two .\nThree lines.\n"
    assert (raw / "dev.de").read_bytes() == b"Eins &amp; two .\nThree lines.\n"
    assert {path.name for path in raw.iterdir()} == {f"{s}.{x}" for s in ("train", "dev", "test") for x in ("en", "de")}
    assert {path.name for path in tmp_path.iterdir()} == {name, "corpus"}


def test_file_with_too_many_lines_is_read_to_the_first_excess(tmp_path):
    data = packed(MEMBERS | {"./dir/train.en": b"\n" * 20_000_000}, "w:gz")
    (tmp_path / "a.tgz").write_bytes(data)
    dataset = archive_dataset(data, "a.tgz", lines=2)
    began = time.process_time()
    with pytest.raises(UserError, match=r"train: dir/train\.en has more than 2 lines; fetch the file again"):
        write_raw_splits(dataset, {"a.tgz": tmp_path / "a.tgz"}, tmp_path / "corpus")
    assert time.process_time() - began < 2 and not (tmp_path / "corpus/raw/train.en").exists()


def test_missing_members_wrong_counts_and_damage_are_named(tmp_path):
    def write(data, **changes):
        (tmp_path / "a.tgz").write_bytes(data)
        write_raw_splits(archive_dataset(data, "a.tgz", **changes), {"a.tgz": tmp_path / "a.tgz"}, tmp_path / "corpus")

    data = packed(MEMBERS, "w:gz")
    with pytest.raises(UserError, match=r"train.*train\.en and dir/train\.de have 2 lines, expected 3"):
        write(data, lines=3)
    with pytest.raises(UserError, match="have 3 and 2 lines"):
        write(packed(MEMBERS | {"./dir/train.en": b"a\nb\nc\n"}, "w:gz"))
    with pytest.raises(UserError, match=r"has no member dir/train\.de"):
        write(packed({name: text for name, text in MEMBERS.items() if name != "dir/train.de"}, "w:gz"))
    with pytest.raises(UserError, match="damaged"):
        write(data[: len(data) // 2])
    with pytest.raises(UserError, match="damaged"):
        write(packed(MEMBERS | {"dir/more.en.gz": gzip.compress(b"e\n" * 100)[:-12]}, "w:gz"))
    assert not list((tmp_path / "corpus").glob("raw/train.*"))


@pytest.mark.parametrize("mode", ["w:gz", "zip"])
@pytest.mark.parametrize("name", ["../escape.en", "dir/../../escape.en", "/tmp/escape.en", "..\\escape.en"])
def test_archive_member_that_escapes_its_folder_is_refused(tmp_path, mode, name):
    (tmp_path / "a").write_bytes(packed({name: b"no\n"} | MEMBERS, mode))
    with pytest.raises(UserError, match="points outside its folder"):
        unpack(tmp_path / "a", "a", {"dir/train.de"}, tmp_path / "unpacked")
    with pytest.raises(UserError, match="points outside its folder"):
        unpack(tmp_path / "a", "a", {name}, tmp_path / "unpacked")
    assert not list(tmp_path.rglob("escape.en")) and not list((tmp_path / "unpacked").iterdir())


def test_a_link_in_an_archive_is_not_followed(tmp_path):
    entry = tarfile.TarInfo("dir/train.de")
    entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with tarfile.open(tmp_path / "a", "w") as archive:
        archive.addfile(entry)
    with pytest.raises(UserError, match=r"no member dir/train\.de"):
        unpack(tmp_path / "a", "a", {"dir/train.de"}, tmp_path / "unpacked")


def test_a_damaged_zip_is_named(tmp_path):
    data = packed(MEMBERS, "zip")
    middle = data.index(b"dir/other.en") + 30
    for damaged in (data[: len(data) // 2], data[:middle] + b"xxx" + data[middle + 3 :]):
        (tmp_path / "a").write_bytes(damaged)
        with pytest.raises(UserError, match="damaged"):
            unpack(tmp_path / "a", "a", {"dir/other.en"}, tmp_path / "unpacked")


@pytest.mark.parametrize(("field", "value", "why"), [(6, 1, "encrypted"), (8, 99, "compression method")])
def test_a_zip_that_is_encrypted_or_packed_otherwise_is_named(tmp_path, field, value, why):
    """Change a field of a member's header; in the directory it is two bytes later."""
    data = bytearray(packed({"a": b"1"}, "zip"))
    data[field] = data[data.index(b"PK\1\2") + field + 2] = value
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(UserError, match=why):
        unpack(tmp_path / "a", "a", {"a"}, tmp_path / "unpacked")


def licensed_dataset():
    splits = {
        split: {
            "parts": [
                {"src": {"package": "P", "member": f"{split}.zh"}, "tgt": {"package": "P", "member": f"{split}.en"}}
            ]
        }
        for split in ("train", "dev", "test")
    }
    content = record(kind="download", packages={"P": "plain text"}, otherwise="toy", splits=splits)
    del content["generator"]
    return content


def test_a_licensed_package_is_read_from_its_folder(tmp_path):
    folder, corpus, dataset = tmp_path / "package", tmp_path / "corpus", tmp_path / "toy.yaml"
    dataset.write_text(json.dumps({key: value for key, value in licensed_dataset().items() if key != "name"}))
    options = ["--dataset", str(dataset), "--downloads", str(tmp_path), "--corpus", str(corpus)]
    with pytest.raises(UserError, match=r"toy: needs P \(plain text\), which is licensed.*`licensed: {P: FOLDER}`"):
        stage(options)
    folder.mkdir()
    for split in ("train", "dev", "test"):
        (folder / f"{split}.zh").write_text(f"{split} zh\n")
    with pytest.raises(UserError, match=r"P: 3 of 6 files are missing: .*train\.en.*dev\.en.*test\.en"):
        stage([*options, "--package", f"P={folder}"])
    for split in ("train", "dev", "test"):
        (folder / f"{split}.en").write_text(f"{split} en\n")
    stage([*options, "--package", f"P={folder}"])
    assert (corpus / "raw/dev.en").read_text() == "dev zh\n"
    assert (corpus / "raw/train.de").read_text() == "train en\n"


def stage(options):
    invoke(parse(["download", *map(str, options)]))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"packages": {}, "otherwise": None}, "splits name P, but it is not under packages"),
        ({"packages": {"P": "x", "Q": "y"}}, "no split uses package Q"),
        ({"otherwise": None}, "set `otherwise` if, and only if, there are `packages`"),
    ],
)
def test_packages_and_splits_must_agree(changes, fault):
    with pytest.raises(UserError, match=fault):
        validate(Dataset, licensed_dataset() | changes, "toy.yaml")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", ["tar", "zip"])
@pytest.mark.parametrize("places", [(0, 1), (0, 2), (1, 2)])
def test_the_last_of_two_members_of_one_name_counts(tmp_path, kind, places, caplog):
    """`tar -x` and `unzip` leave the last one behind."""
    contents = [("two", b"other")] * 3
    for place, content in zip(places, (b"old", b"new"), strict=True):
        contents[place] = ("one", content)
    pack = {"tar": pack_tar, "zip": pack_zip}[kind]
    pack(tmp_path / "a", contents)
    found = unpack(tmp_path / "a", "a", {"one", "two"}, tmp_path / "unpacked")
    assert {member: path.read_bytes() for (_, member), path in found.items()} == {"one": b"new", "two": b"other"}
    assert caplog.messages.count("a: has one more than once; the last one counts") == 1


def pack_tar(path, contents):
    with tarfile.open(path, "w") as archive:
        for name, content in contents:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def pack_zip(path, contents):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents:
            archive.writestr(name, content)


def test_variables_in_a_mirror_are_expanded_once(monkeypatch):
    monkeypatch.setenv("REPRISE_MIRROR", "https://me:$HOME@host/files")
    assert expand_variables("$REPRISE_MIRROR") == "https://me:$HOME@host/files"
    assert expand_variables("../data") == "../data" and expand_variables(None) is None
