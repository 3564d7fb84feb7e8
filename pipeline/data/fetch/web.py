"""HTTP requests that end in bounded time, whatever the server does."""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from pipeline.core.errors import without_secrets

CONNECT_S, SILENCE_S = 10.0, 30.0
ANSWER_S = 60.0
"""Until the head of the answer is there, redirects included."""


class RequestError(Exception):
    """What was asked for did not come; asking again may help."""


class RefusedError(RequestError):
    """Asking again does not help: the address is none, or leads in circles."""


class Deadline:
    """Shuts connections down once its time is over, whatever is waited for on them.

    Timeouts of sockets begin anew with each byte, so a server that sends one now and then would hold a client forever.
    """

    def __init__(self, seconds: float):
        self.sockets: list[socket.socket] = []
        self.changed = threading.Condition()
        self.has_ended = self.has_passed = False
        self.seconds, self.until = seconds, time.monotonic() + seconds

    def extend(self, seconds: float) -> None:
        """Let the time be over `seconds` from now."""
        until = time.monotonic() + seconds
        with self.changed:
            if until < self.until:  # else it is seen in time
                self.changed.notify()
            self.seconds, self.until = seconds, until

    def __enter__(self) -> "Deadline":
        self.thread = threading.Thread(target=self.wait, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self.changed:
            self.has_ended = True
            self.changed.notify()
        self.thread.join()
        for one in self.sockets:
            one.close()

    def wait(self) -> None:
        """Wait for the end of the exchange or of its time."""
        with self.changed:
            while not self.has_ended and (left := self.until - time.monotonic()) > 0:
                self.changed.wait(left)
            self.has_passed = not self.has_ended
            for one in self.sockets if self.has_passed else ():
                shut_down(one)

    def watch(self, connection: socket.socket) -> None:
        """Shut this connection down, too. A duplicate stays ours when TLS is laid over the original."""
        duplicate = socket.socket(fileno=os.dup(connection.fileno()))
        with self.changed:
            self.sockets.append(duplicate)
            if self.has_passed:
                shut_down(duplicate)


def shut_down(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the server was faster
        connection.shutdown(socket.SHUT_RDWR)


class WatchedAdapter(HTTPAdapter):
    """Has a deadline watch every connection that is opened."""

    def __init__(self, deadline: Deadline):
        self.deadline = deadline
        super().__init__()

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
        deadline, plain = self.deadline, pool.ConnectionCls

        class Watched(plain):  # type: ignore[valid-type, misc]
            def connect(self) -> None:
                super().connect()
                deadline.watch(self.sock)

        pool.ConnectionCls = Watched
        return pool


@contextlib.contextmanager
def answer(url: str, headers: dict[str, str], deadline: Deadline, silence_s: float) -> Iterator[requests.Response]:
    """Request an address and yield the head of its answer; read the body by `block_of`.

    Args:
        url: The address; redirects are followed.
        headers: Of the request.
        deadline: Bounds the whole exchange; extend it as the body comes.
        silence_s: Longest time without a byte.

    Raises:
        RequestError: There is no answer.
    """
    # As it lies on the server: some call a .tgz an encoding, which a client then undoes.
    headers = {"Accept-Encoding": "identity"} | headers
    with requests.Session() as session:
        for scheme in ("http://", "https://"):
            session.mount(scheme, WatchedAdapter(deadline))
        hooks = {"response": leave_redirect_unread}
        with client_errors(deadline):
            found = session.get(url, headers=headers, stream=True, timeout=(CONNECT_S, silence_s), hooks=hooks)
        with found:
            yield found


def leave_redirect_unread(response: requests.Response, *_: Any, **__: Any) -> None:
    """Drop the body of a redirect, which requests would read to its end, however far that is."""
    if response.is_redirect:
        response.raw.close()


def block_of(response: requests.Response, size: int, deadline: Deadline) -> bytes:
    """Return the next bytes of a body; none at its end. Raises RequestError when it breaks off."""
    with client_errors(deadline):
        return response.raw.read1(size, decode_content=False)


@contextlib.contextmanager
def client_errors(deadline: Deadline) -> Iterator[None]:
    """Report whatever the HTTP client raises in the block, without passwords and tokens.

    Raises:
        RequestError: The request failed, or the deadline passed.
        RefusedError: Another request would fail alike.
    """
    try:
        yield
    except Exception as error:  # a server can have its client raise anything
        if deadline.has_passed:
            raise RequestError(f"stalled: too slow for {deadline.seconds:g} s") from error
        lasting = isinstance(error, requests.TooManyRedirects | ValueError)  # of an address, or a number, that is none
        kind = RefusedError if lasting else RequestError
        raise kind(without_secrets(f"{type(error).__name__}: {error}")) from error
    if deadline.has_passed:  # a connection that was shut down looks like the end of a body
        raise RequestError(f"stalled: too slow for {deadline.seconds:g} s")
