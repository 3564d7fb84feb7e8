"""Local web server that serves CONTENT and misbehaves as the path says."""

import gzip
import hashlib
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONTENT = bytes(range(256)) * 5000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
PIECE = 300_000
ZIPPED = gzip.compress(CONTENT)
DRIPS = {
    "slow-status": b"",
    "slow-head": b"HTTP/1.1 200 OK\r\nX-Long: ",
    "slow-redirect": b"HTTP/1.1 302 Found\r\nLocation: /good\r\nX-Long: ",
    "slow-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;",
    "slow-body": b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
}
"""Beginnings of endless answers, which continue with a byte now and then."""
REDIRECTS = {"moved": "/good", "moved-cut": "/cut", "loop": "/loop", "moved-away": "/missing"}
REDIRECTS |= {"moved-nowhere": "http://[x"}
ALWAYS_CUT = ("cut", "wrong-part", "wrong-bytes", "nothing-more", "nameless-part")
"""Paths whose answers end after a piece."""


class Handler(BaseHTTPRequestHandler):
    """Request handler; `server.asked` lists requested paths, with `@offset` for ranges."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.path.partition("?")[0].strip("/")
        asked = self.headers.get("Range")
        start = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
        first = path not in {name.partition("@")[0] for name in self.server.asked}
        self.server.asked.append(f"{path}@{start}" if asked else path)
        if path in DRIPS:
            self.drip(DRIPS[path], b"x", 0.02)
        elif path == "moved-endless":
            self.drip(b"HTTP/1.1 302 Found\r\nLocation: /good\r\nContent-Length: 999999999999\r\n\r\n", bytes(PIECE), 0)
        elif path in REDIRECTS:
            self.answer(302, b"", {"Location": REDIRECTS[path]})
        elif path == "missing" or (path == "flaky" and self.server.asked.count("flaky") < 3):
            self.answer(503 if path == "flaky" else 404, b"sorry")
        elif path == "busy" and first:
            self.answer(503, b"", {"Retry-After": "1"})
        elif path == "page":
            self.start(200, {"Content-Type": "text/html; charset=utf-8"}, None)
            self.wfile.write(b"<html>Back soon</html>")
            self.close_connection = True
        elif path == "nothing-more" and asked:
            self.answer(416, b"")
        elif path == "silent":
            self.wait_for_client()
        else:
            self.file(path, asked, start, first)

    def drip(self, begin: bytes, piece: bytes, pause_s: float):
        """Answer without end, until the client closes the connection."""
        self.close_connection = True
        with suppress(OSError):
            self.wfile.write(begin)
            while True:
                self.wfile.write(piece)
                time.sleep(pause_s)

    def wait_for_client(self):
        """Say nothing until the client closes the connection."""
        self.close_connection = True
        with suppress(OSError):
            self.rfile.read(1)

    def file(self, path: str, asked: str | None, start: int, first: bool):
        altered = path == "altered" or (path == "corrupt-once" and first)
        body = {"labelled": ZIPPED, "short": CONTENT[:-9]}.get(path, b"x" + CONTENT[1:] if altered else CONTENT)
        headers, status = {"Content-Encoding": "gzip"} if path == "labelled" else {}, 200
        headers |= {"Content-Type": "text/html"} if path == "good.html" else {}
        claimed = {"says-no-end": "9" * 5000, "says-petabytes": f"{10**15}"}.get(path)
        if asked and path not in ("cut-no-ranges", "no-ranges"):
            begin = start + 7 * (path == "wrong-part")
            if path != "nameless-part":
                headers["Content-Range"] = f"bytes {begin}-{len(body) - 1}/{claimed or len(body)}"
            body, status = bytes(len(body) - start) if path == "wrong-bytes" else body[start:], 206
        length = claimed or len(body) + {"says-more": 9, "says-less": -9}.get(path, 0)
        self.start(status, headers, None if path in ("no-length", "no-length-cut", "endless") else length)
        is_cut = path in ALWAYS_CUT or (path in ("cut-no-ranges", "no-length-cut") and first)
        sent = body[:PIECE] if is_cut else body + bytes(PIECE) if path == "endless" else body
        with suppress(OSError):  # the client closed the connection
            if path == "stall" and first:
                self.wfile.write(sent[:PIECE])
                self.wait_for_client()
            elif path == "trickle":
                for _ in range(100):
                    self.wfile.write(b"x")
                    time.sleep(0.05)
            else:
                self.wfile.write(sent)
        self.close_connection = True

    def start(self, status: int, headers: dict[str, str], length: int | str | None):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if length is not None:
            self.send_header("Content-Length", str(length))
        else:
            self.send_header("Connection", "close")
        self.end_headers()

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None):
        self.start(status, headers or {}, len(body))
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@contextmanager
def serving():
    """Run the server; its address is `.url`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    server.asked = []
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
