"""Downloads are verified, retried and taken from the next place; a failure lists every file and every place."""

import gzip
import hashlib
import io
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from toy_corpus import record

from pipeline.config import validate
from pipeline.data import download
from pipeline.data.dataset import Dataset, Source
from pipeline.data.download import fetch, fetch_all
from pipeline.data.raw_text import write_raw_splits
from pipeline.errors import UserError

CONTENT = bytes(range(256)) * 5000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT at /good; other paths misbehave as their name says."""

    def do_GET(self):
        path = self.path.strip("/")
        self.server.asked.append(path)
        if path == "missing" or (path == "flaky" and self.server.asked.count("flaky") < 3):
            self.send_error(503 if path == "flaky" else 404)
            return
        if path == "moved":
            self.send_response(302)
            self.send_header("Location", "/good")
            self.end_headers()
            return
        body = {"altered": b"x" + CONTENT[1:], "short": CONTENT[:-9]}.get(path, CONTENT)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if path == "cut" else body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(download, "FIRST_PAUSE_SECONDS", 0.0)
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.asked = []
    httpd.url = f"http://127.0.0.1:{httpd.server_port}"
    thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
    thread.start()
    yield httpd
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def source(*urls, **changes):
    return Source(**{"urls": list(urls) or ["http://127.0.0.1:9/none"], "sha256": SHA256} | changes)


@pytest.mark.parametrize("path", ["good", "flaky", "moved"])
def test_a_file_is_fetched_despite_refusals_and_redirects(server, tmp_path, path):
    found = fetch("a.bin", source(f"{server.url}/{path}"), tmp_path, None)
    assert found == tmp_path / "a.bin" and found.read_bytes() == CONTENT
    assert [item.name for item in tmp_path.iterdir()] == ["a.bin"]


def test_a_verified_file_is_not_fetched_again(server, tmp_path):
    for _ in range(2):
        fetch("a.bin", source(f"{server.url}/good"), tmp_path, None)
    assert server.asked == ["good"]


@pytest.mark.parametrize("path", ["altered", "short", "cut", "missing"])
def test_a_bad_address_is_named_and_the_next_one_tried(server, tmp_path, path):
    urls = [f"{server.url}/{path}", f"{server.url}/good"]
    assert fetch("a.bin", source(*urls), tmp_path, None).read_bytes() == CONTENT
    (tmp_path / "a.bin").unlink()
    with pytest.raises(UserError, match=rf"a\.bin: .*/{path}") as raised:
        fetch("a.bin", source(urls[0]), tmp_path, None)
    assert path not in ("altered", "short") or SHA256 in str(raised.value)
    assert not list(tmp_path.iterdir())


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
    (tmp_path / "a.bin").write_bytes(CONTENT[:-1])
    wanted = source(f"{server.url}/missing", bytes=len(CONTENT))
    with pytest.raises(UserError, match=rf"sha256 expected {SHA256}, got .*{len(CONTENT) - 1} bytes"):
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


def tar(members: dict[str, bytes], mode: str) -> bytes:
    buffer = io.BytesIO()
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
    "../../escape.en": b"no\n",
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


@pytest.mark.parametrize(("name", "mode"), [("a.tgz", "w:gz"), ("a.tar", "w"), ("a.tar.bz2", "w:bz2")])
def test_named_members_become_raw_splits_and_nothing_else_is_written(tmp_path, name, mode):
    data = tar(MEMBERS, mode)
    (tmp_path / name).write_bytes(data)
    write_raw_splits(archive_dataset(data, name, lines=2), {name: tmp_path / name}, tmp_path / "corpus")
    raw = tmp_path / "corpus/raw"
    assert (raw / "train.en").read_bytes() == b"a\rb\nc d\ne\n"
    assert (raw / "train.de").read_bytes() == "ä\u2028\nö\nf\n".encode()
    assert (raw / "test.en").read_bytes() == b"One &amp; two .\nThree lines.\n"
    assert (raw / "dev.de").read_bytes() == b"Eins &amp; two .\nThree lines.\n"
    assert {path.name for path in raw.iterdir()} == {f"{s}.{x}" for s in ("train", "dev", "test") for x in ("en", "de")}
    assert {path.name for path in tmp_path.iterdir()} == {name, "corpus"}


def test_missing_members_wrong_counts_and_damage_are_named(tmp_path):
    def write(data, **changes):
        (tmp_path / "a.tgz").write_bytes(data)
        write_raw_splits(archive_dataset(data, "a.tgz", **changes), {"a.tgz": tmp_path / "a.tgz"}, tmp_path / "corpus")

    data = tar(MEMBERS, "w:gz")
    with pytest.raises(UserError, match=r"train.*train\.en and dir/train\.de have 2 lines, expected 3"):
        write(data, lines=3)
    with pytest.raises(UserError, match="have 3 and 2 lines"):
        write(tar(MEMBERS | {"./dir/train.en": b"a\nb\nc\n"}, "w:gz"))
    with pytest.raises(UserError, match=r"has no member dir/train\.de"):
        write(tar({name: text for name, text in MEMBERS.items() if name != "dir/train.de"}, "w:gz"))
    with pytest.raises(UserError, match="damaged"):
        write(data[: len(data) // 2])
    with pytest.raises(UserError, match="damaged"):
        write(tar(MEMBERS | {"dir/more.en.gz": gzip.compress(b"e\n" * 100)[:-12]}, "w:gz"))
    assert not list((tmp_path / "corpus").glob("raw/train.*"))
