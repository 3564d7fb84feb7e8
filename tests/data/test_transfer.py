"""A download ends complete and verified, or with one line that says why; received bytes are not fetched again."""

import errno
import fcntl
import hashlib
import logging
import random
import string
import threading
import time
from unittest.mock import Mock

import bad_server
import pytest
from bad_server import CONTENT, PIECE, SHA256, ZIPPED

from pipeline.core import disk
from pipeline.core.errors import UserError
from pipeline.data.dataset import Source
from pipeline.data.fetch import transfer
from pipeline.data.fetch.download import fetch
from pipeline.data.fetch.transfer import DownloadError, fetch_url
from pipeline.data.fetch.web import Deadline, RequestError, open_response

SIZE = len(CONTENT)
KNOWN = f"sha256:{SHA256}"


@pytest.fixture
def server(server, monkeypatch):
    monkeypatch.setattr(transfer, "PROGRESS_BYTES", 100_000)
    return server


@pytest.fixture
def short_limits(path, monkeypatch):
    """Let a client wait for a short time where the server pauses; elsewhere a busy machine may exceed such limits."""
    if path in ("silent", "stall"):
        monkeypatch.setattr(transfer, "SILENCE_S", 0.2)
    if path == "trickle":
        monkeypatch.setattr(transfer, "SLOWEST_S", 0.15)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "a.bin"


def fetched(server, path, target, known_hash=KNOWN, expected=SIZE):
    """Fetch a file and return its content, after checking that no other file is left."""
    fetch_url(f"{server.url}/{path}", target, known_hash, expected)
    assert [item.name for item in target.parent.iterdir()] == [target.name]
    return target.read_bytes()


def fault(server, path, target, **how):
    with pytest.raises(DownloadError) as raised:
        fetched(server, path, target, **how)
    assert not target.exists()
    return str(raised.value)


ARRIVING = ["good", "flaky", "moved", "cut", "moved-cut", "cut-no-ranges", "no-ranges", "corrupt-once", "stall"]


@pytest.mark.usefixtures("short_limits")
@pytest.mark.parametrize("path", [*ARRIVING, "no-length", "no-length-cut", "moved-endless"])
@pytest.mark.parametrize("expected", [len(CONTENT), None], ids=["size known", "size unknown"])
def test_a_file_arrives_whole_through_any_passing_fault(server, target, path, expected):
    """The body of a redirect is not read, so it may be endless."""
    assert fetched(server, path, target, expected=expected) == CONTENT


def test_interrupted_download_requests_only_the_rest(server, target):
    fetched(server, "cut", target)
    assert server.asked == ["cut", *(f"cut@{offset}" for offset in range(PIECE, len(CONTENT), PIECE))]


def test_download_resumes_in_a_new_process_from_another_url(server, target, monkeypatch):
    monkeypatch.setattr(transfer, "ATTEMPTS", 1)
    monkeypatch.setattr(transfer, "PROGRESS_BYTES", len(CONTENT))
    assert "broke off" in fault(server, "cut", target) or "IncompleteRead" in fault(server, "cut", target)
    kept = (target.parent / "a.bin.part").stat().st_size
    assert kept
    assert fetched(server, "good", target) == CONTENT
    assert server.asked[-1] == f"good@{kept}"


@pytest.mark.parametrize("rest", [CONTENT, CONTENT[:PIECE][::-1], CONTENT + b"x", CONTENT[:-1] + b"x"])
def test_a_part_of_another_file_costs_a_fresh_start_and_no_more(server, target, rest):
    """A whole file that is not verified yet costs no request."""
    (target.parent / "a.bin.part").write_bytes(rest)
    assert fetched(server, "good", target) == CONTENT
    assert server.asked[-1:] == ["good"] * (rest != CONTENT) and len(server.asked) <= 2


def test_web_page_in_place_of_a_file_costs_no_received_byte(server, target):
    """Without a checksum, as for the documents of a treebank, the page would be kept for the file."""
    assert "sends a web page" in fault(server, "page", target, known_hash=None, expected=None)
    (target.parent / "a.bin.part").write_bytes(CONTENT[:PIECE])
    assert "sends a web page" in fault(server, "page", target)
    assert fetched(server, "good", target) == CONTENT
    assert server.asked == ["page", f"page@{PIECE}", f"good@{PIECE}"]


@pytest.mark.parametrize("expected", [SIZE, None])
def test_file_labelled_as_web_page_is_judged_by_its_checksum(server, target, expected):
    assert fetched(server, "good.html", target, expected=expected) == CONTENT


WRONG_RANGES = {
    **{"wrong-part": "continues at byte", "nothing-more": "has nothing after"},
    **{"nameless-part": "without naming it", "wrong-bytes": "sha256 expected"},
}


@pytest.mark.parametrize("path", WRONG_RANGES)
def test_wrong_ranges_never_reach_the_file(server, target, path, monkeypatch, caplog):
    monkeypatch.setattr(transfer, "PROGRESS_BYTES", SIZE)
    caplog.set_level("INFO")
    assert WRONG_RANGES[path] in f"{fault(server, path, target)} {fault(server, path, target)} {caplog.text}"
    assert fetched(server, "good", target) == CONTENT


REASONS = {
    **{"missing": "status 404", "moved-away": "status 404", "loop": "Exceeded 30 redirects"},
    **{"altered": "sha256 expected", "endless": f"sends more than the {SIZE} bytes expected"},
    "short": f"has {SIZE - 9} bytes, expected {SIZE}",
    "says-more": f"has {SIZE + 9} bytes, expected {SIZE}",
    "says-less": f"has {SIZE - 9} bytes, expected {SIZE}",
    **{"silent": "ReadTimeout", "trickle": "stalled"},
    **{"moved-nowhere": "Invalid IPv6 URL", "says-no-end": "Exceeds the limit"},
}


@pytest.mark.usefixtures("short_limits")
@pytest.mark.parametrize("path", REASONS)
def test_failing_url_is_reported_with_the_reason(server, target, path):
    assert REASONS[path] in (found := fault(server, path, target)) and f"{server.url}/{path}" in found


def test_progress_has_share_rate_and_time_left():
    said = transfer.progress(2_000_000, 30_000_000, 40_000_000, 10.0)
    assert said == "30.0 MB of 40.0 MB (75 %), 2.8 MB/s, 4 s left"


def test_a_body_labelled_as_encoded_is_kept_as_it_is(server, target):
    known = "sha256:" + hashlib.sha256(ZIPPED).hexdigest()
    assert fetched(server, "labelled", target, known, len(ZIPPED)) == ZIPPED


def test_a_server_that_names_a_pause_gets_it(server, target):
    began = time.monotonic()
    assert fetched(server, "busy", target) == CONTENT
    assert time.monotonic() - began >= 1.0


def test_pauses_grow(target, monkeypatch):
    pauses = []
    monkeypatch.setattr(transfer, "FIRST_PAUSE_S", 1.0)
    monkeypatch.setattr(transfer.time, "sleep", pauses.append)
    with pytest.raises(DownloadError, match="none: ConnectionError"):
        fetch_url("http://127.0.0.1:9/none", target, KNOWN)
    assert pauses == [1.0, 2.0, 4.0]


def test_download_without_a_checksum_is_not_resumed(server, target):
    (target.parent / "a.bin.part").write_bytes(b"something else")
    assert fetched(server, "good", target, known_hash=None, expected=None) == CONTENT


def test_two_processes_fetch_a_file_once(server, target):
    part = target.parent / "a.bin.part"
    with open(part, "ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        waiting = threading.Thread(target=fetch_url, args=(f"{server.url}/good", target, KNOWN))
        waiting.start()
        time.sleep(0.1)
        assert not server.asked
        other.write(CONTENT)
        other.flush()
        part.rename(target)
    waiting.join()
    assert not server.asked and [item.name for item in target.parent.iterdir()] == ["a.bin"]


def test_file_system_without_locks_is_named_as_the_cause(server, target, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=OSError(errno.ENOSYS, "Function not implemented")))
    with pytest.raises(UserError, match=r"no file locks \(Function not implemented\); set `work:` to a folder on one"):
        fetch_url(f"{server.url}/good", target, KNOWN)
    assert not server.asked


def test_full_disk_is_reported_before_the_download(server, target, monkeypatch):
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda folder: type("", (), {"free": 1000})())
    with pytest.raises(UserError, match=r"will need 1\.3 MB and a reserve of 67\.1 MB, but 1\.0 kB are free"):
        fetch_url(f"{server.url}/good", target, KNOWN, len(CONTENT))
    assert not list(target.parent.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("path", ["slow-status", "slow-head", "slow-redirect", "slow-chunk", "slow-body"])
def test_bytes_now_and_then_are_no_progress(server, target, path, monkeypatch, caplog):
    """The client counts its attempts: a busy server may not read a request that was cut off after 0.3 s."""
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(transfer, "ANSWER_S", 0.3)
    monkeypatch.setattr(transfer, "SLOWEST_S", 0.15)
    assert f"/{path}: stalled" in fault(server, path, target)
    assert caplog.text.count(f"/{path}: stalled") == transfer.ATTEMPTS - 1  # the last stall is the error


def test_size_that_only_a_server_claims_does_not_stop_the_search(server, tmp_path):
    addresses = [f"{server.url}/{path}" for path in ("says-petabytes", "good")]
    source = Source(urls=addresses, sha256=SHA256)
    assert fetch("a.bin", source, tmp_path, None).read_bytes() == CONTENT
    with pytest.raises(UserError, match=r"/says-petabytes: .* will need 1,000,000\.0 GB"):
        fetch("b.bin", source.model_copy(update={"urls": addresses[:1]}), tmp_path, None)


def test_deadline_closes_connections_opened_after_it(server):
    with Deadline(0.01) as deadline:
        deadline.thread.join()
        with pytest.raises(RequestError, match="stalled"), open_response(f"{server.url}/good", {}, deadline, 1.0):
            pass
    assert not server.asked


@pytest.mark.usefixtures("short_limits")
@pytest.mark.parametrize("path", ["missing", "silent", "altered", "loop", "says-petabytes"])
@pytest.mark.parametrize("user", ["", "user:{}@"])
def test_logs_and_errors_have_no_secrets(server, target, path, user, caplog):
    caplog.set_level(logging.INFO)
    password, token, signature = secrets = random_secrets()
    bare = f"{server.url}/{path}".replace("://", f"://{user.format(password)}")
    with pytest.raises(DownloadError) as raised:
        fetch_url(f"{bare}?token={token}&sig={signature}", target, KNOWN)
    shown = f"{raised.value} {caplog.text}"
    assert not any(secret in shown for secret in secrets) and "token=…&sig=…" in shown


@pytest.mark.parametrize("form", ["http://user:{}/{}@127.0.0.1/a", "http://{}:{}/a", "http://[{}/{}", "//{}:{}@:x/"])
def test_invalid_redirects_show_no_secrets(server, target, monkeypatch, form):
    secrets = random_secrets()
    monkeypatch.setitem(bad_server.REDIRECTS, "invalid", form.format(*secrets))
    shown = fault(server, "invalid", target)
    assert not any(secret in shown for secret in secrets), shown


def random_secrets() -> list[str]:
    return ["".join(random.choices(string.ascii_letters + string.digits, k=12)) for _ in range(3)]
