"""Web servers on this machine that follow a random script, most of which no protocol allows."""

import contextlib
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator

CONTENT = random.Random(7).randbytes(300_000)
LENGTHS = ["0", "-1", "5", str(len(CONTENT)), str(len(CONTENT) + 1), str(10**15), "9" * 5000, "x", "", "1, 2"]
PLACES = [
    "/",
    "//",
    "http://[",
    "file:///etc/passwd",
    "gopher://x",
    "data:,x",
    "?",
    "#",
    "\x00",
    "http://127.0.0.1:1/",
    "/é",
]
PLACES += ["http://user:pw@/", "http://" + "a" * 300 + "/", "/x" * 3000]
HEADERS = [
    "Content-Length",
    "Content-Range",
    "Transfer-Encoding",
    "Retry-After",
    "Content-Encoding",
    "Location",
    "Connection",
]
HEADERS += ["Set-Cookie", "Refresh", "X-Any", "Upgrade"]
VALUES = [
    *LENGTHS,
    *PLACES,
    "bytes 0-4/5",
    "bytes 5-4/3",
    "bytes */0",
    "bytes 0-0/" + "9" * 20,
    "chunked",
    "gzip",
    "zstd",
]
VALUES += ["identity", "close", "keep-alive", "nan", "inf", "1e99", "Wed, 21 Oct 2099 07:28:00 GMT", "chunked, chunked"]
STATUS = [
    "200 OK",
    "206 Partial",
    "301 M",
    "302 M",
    "307 M",
    "404 N",
    "408 T",
    "416 R",
    "429 T",
    "500 E",
    "503 E",
    "100 C",
    "103 E",
]
STATUS += ["999 X", "0 X", "-1 X", "20 OK", "two hundred", "", "204 N", "304 N"]


def script(rng: random.Random, serves: bool = False) -> list[bytes | float]:
    """Return the response to one request: bytes, and pauses in seconds; a negative one at the end means a reset."""
    version = rng.choice(["HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/9.9", "ICY", ""])
    lines = [f"{version} {rng.choice(STATUS)}"]
    for _ in range(rng.choice([0, 1, 2, 3, 3, 150])):
        lines.append(f"{rng.choice(HEADERS)}: {rng.choice(VALUES)}")
    if rng.random() < 0.1:
        lines.append("X-Long: " + "x" * rng.choice([1000, 70_000, 1_000_000]))
    head = rng.choice(["\r\n", "\r\n", "\n", "\r"]).join([*lines, "", ""]).encode()
    if rng.random() < 0.3:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % rng.choice([5, len(CONTENT), 10**15])
    bodies: list[list[bytes | float]] = [
        [CONTENT],
        [CONTENT[: rng.randrange(len(CONTENT))]],
        [CONTENT, CONTENT],
        [rng.randbytes(1000)],
        [b"5\r\nhello\r\n0\r\n\r\n"],
        [b"ffffffffffffffff\r\nhello"],
        [b"5;" + b"x" * 100_000],
        [head] * 30,
        [b""],
        [part for _ in range(200) for part in (b"x", 0.05)],
        [bytes(1 << 20)] * 50,
    ]
    found: list[bytes | float] = [head]
    if rng.random() < 0.2:
        found = [part for byte in head[:200] for part in (bytes([byte]), 0.05)]
    found += rng.choice(bodies)
    if rng.random() < 0.2:
        found.insert(rng.randrange(len(found)), rng.choice([0.5, 3.0]))
    return [*found, -1.0] if rng.random() < 0.2 else found


@contextlib.contextmanager
def serving(rng: random.Random) -> Iterator[str]:
    """Yield the address of a server that follows a few scripts in turn. `/good` is served as it should be."""
    scripts = [script(rng) for _ in range(3)]
    listener = socket.create_server(("127.0.0.1", 0))
    stopped = threading.Event()
    threads: list[threading.Thread] = []

    def accept() -> None:
        number = 0
        while not stopped.is_set():
            try:
                client, _ = listener.accept()
            except OSError:
                return
            thread = threading.Thread(
                target=answer, args=(client, scripts[number % len(scripts)], stopped), daemon=True
            )
            thread.start()
            threads.append(thread)
            number += 1

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        stopped.set()
        listener.close()


def answer(client: socket.socket, parts: list[bytes | float], stopped: threading.Event) -> None:
    with contextlib.suppress(OSError), client:
        client.settimeout(5)
        asked = client.recv(65536)
        if asked.startswith(b"GET /good"):
            parts = [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(CONTENT), CONTENT]
        for part in parts:
            if stopped.is_set():
                return
            if isinstance(part, bytes):
                client.sendall(part)
            elif part > 0:
                time.sleep(part)
            else:  # closed without waiting: the system sends a reset
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
