"""A web server on this machine for the archives."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Quiet(SimpleHTTPRequestHandler):
    """A request handler without a log, also for clients that only check that a file exists and hang up."""

    def log_message(self, *args: object) -> None:
        pass

    def copyfile(self, *args: Any) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            super().copyfile(*args)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder and yield its address."""
    folder.mkdir(parents=True, exist_ok=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
