"""Downloads are verified, retried and taken from the next place; a failure lists every file and every place."""

import gzip
import hashlib
import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from bad_server import CONTENT, SHA256
from made_archives import pack
from time_limit import within
from toy_corpus import download_record, one_part

from pipeline.core import disk
from pipeline.core.errors import UserError
from pipeline.core.schema import validate
from pipeline.data.dataset import Dataset, Source
from pipeline.data.fetch.archives import unpack
from pipeline.data.fetch.download import expand_variables, fetch, fetch_all
from pipeline.data.fetch.raw_text import write_raw_splits
from pipeline.stages import PIPELINE

SPLITS = ("train", "dev", "test")


def source(*urls, **changes):
    return Source(**{"urls": list(urls) or ["http://127.0.0.1:9/none"], "sha256": SHA256} | changes)


def test_a_file_is_fetched_and_verified_once(server, tmp_path):
    for _ in range(2):
        found = fetch("a.bin", source(f"{server.url}/good"), tmp_path, None)
        assert found == tmp_path / "a.bin" and found.read_bytes() == CONTENT
    assert {item.name for item in tmp_path.iterdir()} == {"a.bin", ".verified"}
    assert server.asked == ["good"]


@pytest.mark.parametrize("path", ["altered", "short", "says-more", "says-less", "missing"])
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


def test_a_link_to_a_folder_whose_name_is_not_utf_8_is_a_mirror(tmp_path):
    odd = tmp_path / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    (odd / "a.bin").write_bytes(CONTENT)
    (tmp_path / "mirror").symlink_to(odd)
    assert fetch("a.bin", source(), tmp_path / "downloads", str(tmp_path / "mirror")).read_bytes() == CONTENT
    assert [*(tmp_path / "downloads/.verified").iterdir()]


def test_a_mirror_url_is_tried_first(server, tmp_path):
    wanted = source(f"{server.url}/missing", mirror="good")
    assert fetch("a.bin", wanted, tmp_path, server.url).read_bytes() == CONTENT
    assert server.asked == ["good"]


@pytest.mark.parametrize(
    ("known", "fault"),
    [({}, f"sha256 expected {SHA256}, got"), ({"bytes": len(CONTENT)}, f"{len(CONTENT) - 1} bytes, expected ")],
)
def test_a_damaged_mirror_file_is_reported_and_not_used(server, tmp_path, known, fault):
    (tmp_path / "a.bin").write_bytes(CONTENT[1:])
    with pytest.raises(UserError, match=fault):
        fetch("a.bin", source(f"{server.url}/missing", **known), tmp_path / "downloads", str(tmp_path))


def test_a_folder_in_place_of_a_mirror_file_is_not_used(server, tmp_path):
    (tmp_path / "mirror/a.bin").mkdir(parents=True)
    wanted, missing = source(f"{server.url}/good"), source(f"{server.url}/missing")
    with pytest.raises(UserError, match=r"mirror/a\.bin: Is a directory; .*/missing: status 404"):
        fetch("a.bin", missing, tmp_path / "downloads", str(tmp_path / "mirror"))
    assert fetch("a.bin", wanted, tmp_path / "downloads", str(tmp_path / "mirror")).read_bytes() == CONTENT


def test_a_mirror_that_cannot_be_asked_is_passed_over(server, tmp_path):
    """The system refuses so long a name, as it does a folder without the right to search it."""
    wanted = source(f"{server.url}/good")
    assert fetch("a.bin", wanted, tmp_path, str(tmp_path / ("m" * 300))).read_bytes() == CONTENT


def test_all_missing_files_are_listed_at_once(server, tmp_path):
    dataset = toy_download({"a.gz": b"", "b.gz": b"", "c.gz": b""}, server.url + "/missing")
    (tmp_path / "b.gz").write_bytes(b"")
    with pytest.raises(UserError, match=r"(?s)2 of 3 files missing.*a\.gz: .*c\.gz: .*`mirror:`") as raised:
        fetch_all(dataset, tmp_path, None)
    assert "b.gz: " not in str(raised.value)


def test_an_interrupted_download_needs_space_for_the_rest(server, tmp_path, monkeypatch):
    (tmp_path / "a.bin.part").write_bytes(CONTENT[:-50])
    sources = {"a.bin": source(f"{server.url}/good", bytes=len(CONTENT))}
    dataset = toy_download({"a.bin": CONTENT}).model_copy(update={"sources": sources})
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda folder: SimpleNamespace(free=disk.SPARE_BYTES + 100))
    assert fetch_all(dataset, tmp_path, None)["a.bin"].read_bytes() == CONTENT


def toy_download(files: dict[str, bytes], url: str = "http://127.0.0.1:9/none", splits: dict | None = None):
    """Return a dataset of fetched files; by default, the first of them is the source side of all splits."""
    first, *_ = sides = [{"source": name} for name in files]
    split = {"parts": [{"src": first, "tgt": side} for side in sides]}
    splits = splits or dict.fromkeys(SPLITS, split)
    sources = {name: {"urls": [url], "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()}
    return validate(Dataset, download_record(sources=sources, splits=splits), "toy.yaml")


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


def write_splits(path: Path, data: bytes, lines: int | None = None) -> None:
    """Write an archive, and beside it the raw splits of its text and a folder of it; `train` is to have some lines."""

    def side(member):
        return {"source": path.name, "member": member}

    path.write_bytes(data)
    train = one_part(side("dir/train.en"), side("dir/train.de"), lines=lines)
    train["parts"] += one_part(side("dir/more.en.gz"), side("dir/more.de.gz"))["parts"]
    test = one_part(side("test/x-src.en.sgm"), side("test/x-ref.de.sgm"))
    dataset = toy_download({path.name: data}, splits={"train": train, "dev": test, "test": test})
    write_raw_splits(dataset, {path.name: path}, path.with_name("corpus"))


@pytest.mark.parametrize("kind", ["tar", "gz", "bz2", "xz", "zip"])
def test_only_named_members_are_written_as_raw_splits(tmp_path, kind):
    write_splits(tmp_path / f"a.{kind}", pack(MEMBERS.items(), kind), lines=2)
    raw = tmp_path / "corpus/raw"
    assert (raw / "train.en").read_bytes() == b"a\rb\nc d\ne\n"
    assert (raw / "train.de").read_bytes() == "ä\u2028\nö\nf\n".encode()
    assert (raw / "test.en").read_bytes() == b"One &amp; two .\nThree lines.\n"
    assert (raw / "dev.de").read_bytes() == b"Eins &amp; two .\nThree lines.\n"
    assert {path.name for path in raw.iterdir()} == {f"{s}.{x}" for s in SPLITS for x in ("en", "de")}
    assert {path.name for path in tmp_path.iterdir()} == {f"a.{kind}", "corpus"}


def test_file_with_too_many_lines_is_read_to_the_first_excess(tmp_path):
    data = pack((MEMBERS | {"./dir/train.en": b"\n" * 20_000_000}).items(), "gz")
    refused = pytest.raises(UserError, match=r"train: dir/train\.en has more than 2 lines; fetch the file again")
    with within(2), refused:
        write_splits(tmp_path / "a.tgz", data, lines=2)
    assert not (tmp_path / "corpus/raw/train.en").exists()


@pytest.mark.parametrize(
    ("changes", "lines", "fault"),
    [
        ({}, 3, r"train.*train\.en and dir/train\.de have 2 lines, expected 3"),
        ({"./dir/train.en": b"a\nb\nc\n"}, None, "have 3 and 2 lines"),
        ({"dir/train.de": None}, None, r"has no member dir/train\.de"),
        ({"dir/more.en.gz": gzip.compress(b"e\n" * 100)[:-12]}, None, "damaged"),
    ],
)
def test_missing_members_wrong_counts_and_damage_are_named(tmp_path, changes, lines, fault):
    files = {name: content for name, content in (MEMBERS | changes).items() if content is not None}
    with pytest.raises(UserError, match=fault):
        write_splits(tmp_path / "a.tgz", pack(files.items(), "gz"), lines)
    assert not list((tmp_path / "corpus").glob("raw/train.*"))


@pytest.mark.parametrize("kind", ["gz", "zip"])
@pytest.mark.parametrize("name", ["../escape.en", "dir/../../escape.en", "/tmp/escape.en", "..\\escape.en"])
def test_archive_member_that_escapes_its_folder_is_refused(tmp_path, kind, name):
    (tmp_path / "a").write_bytes(pack([(name, b"no\n"), *MEMBERS.items()], kind))
    for wanted in ("dir/train.de", name):
        with pytest.raises(UserError, match="points outside its folder"):
            unpack(tmp_path / "a", "a", {wanted}, tmp_path / "unpacked")
    assert not list(tmp_path.rglob("escape.en")) and not list((tmp_path / "unpacked").iterdir())


@pytest.mark.parametrize("kind", ["gz", "zip"])
def test_an_archive_that_is_cut_off_or_altered_is_named(tmp_path, kind):
    data = pack(MEMBERS.items(), kind)
    middle = data.index(b"dir/other.en") + 30 if kind == "zip" else len(data) // 2
    for damaged in (data[: len(data) // 2], data[:middle] + b"xxx" + data[middle + 3 :]):
        (tmp_path / "a").write_bytes(damaged)
        with pytest.raises(UserError, match="damaged"):
            unpack(tmp_path / "a", "a", {"dir/other.en", "test/x-ref.de.sgm"}, tmp_path / "unpacked")


@pytest.mark.parametrize(("field", "value", "why"), [(6, 1, "encrypted"), (8, 99, "compression method")])
def test_a_zip_that_is_encrypted_or_packed_otherwise_is_named(tmp_path, field, value, why):
    """Change a field of a member's header; in the directory it is two bytes later."""
    data = bytearray(pack([("a", b"1")], "zip"))
    data[field] = data[data.index(b"PK\1\2") + field + 2] = value
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(UserError, match=why):
        unpack(tmp_path / "a", "a", {"a"}, tmp_path / "unpacked")


def licensed_dataset():
    sides = {split: [{"package": "P", "member": f"{split}.{end}"} for end in ("zh", "en")] for split in SPLITS}
    splits = {split: one_part(*pair) for split, pair in sides.items()}
    return download_record(packages={"P": "plain text"}, otherwise="toy", splits=splits)


def download(*options):
    PIPELINE.invoke(PIPELINE.parse(["download", *options]))


def test_a_licensed_package_is_read_from_its_folder(tmp_path):
    folder, corpus, dataset = tmp_path / "package", tmp_path / "corpus", tmp_path / "toy.yaml"
    dataset.write_text(json.dumps({key: value for key, value in licensed_dataset().items() if key != "name"}))
    options = ["--dataset", str(dataset), "--downloads", str(tmp_path), "--corpus", str(corpus)]
    with pytest.raises(UserError, match=r"toy: needs P \(plain text\), which is licensed.*`licensed: {P: FOLDER}`"):
        download(*options)
    folder.mkdir()
    for split in SPLITS:
        (folder / f"{split}.zh").write_text(f"{split} zh\n")
    with pytest.raises(UserError, match=r"P: 3 of 6 files missing: .*train\.en.*dev\.en.*test\.en"):
        download(*options, "--package", f"P={folder}")
    for split in SPLITS:
        (folder / f"{split}.en").write_text(f"{split} en\n")
    download(*options, "--package", f"P={folder}")
    assert (corpus / "raw/dev.en").read_text() == "dev zh\n"
    assert (corpus / "raw/train.de").read_text() == "train en\n"


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", ["tar", "zip"])
@pytest.mark.parametrize("places", [(0, 1), (0, 2), (1, 2)])
def test_the_last_of_two_members_of_one_name_counts(tmp_path, kind, places, caplog):
    """`tar -x` and `unzip` leave the last one behind."""
    contents = [("two", b"other")] * 3
    for place, content in zip(places, (b"old", b"new"), strict=True):
        contents[place] = ("one", content)
    (tmp_path / "a").write_bytes(pack(contents, kind))
    found = unpack(tmp_path / "a", "a", {"one", "two"}, tmp_path / "unpacked")
    expected = {"one": b"new", "two": b"other"}
    assert {member: path.read_bytes() for (_, member), path in found.items()} == expected
    assert [member for _, member in found] == sorted(expected, reverse=places[1] == 2), "it has the place of the last"
    assert caplog.messages.count("a: has one more than once; the last one counts") == 1


def test_variables_in_a_mirror_are_expanded_once(monkeypatch):
    monkeypatch.setenv("REPRISE_MIRROR", "https://me:$HOME@host/files")
    assert expand_variables("$REPRISE_MIRROR") == "https://me:$HOME@host/files"
    assert expand_variables("../data") == "../data" and expand_variables(None) is None
