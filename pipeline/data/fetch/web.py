"""HTTP requests with a time limit, whatever the server does."""

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
"""Seconds until the head of the response, redirects included."""


class RequestError(Exception):
    """A failed request that may be retried.

    Args:
        fault: What happened.
        pause_s: Seconds that the server asks to wait.
    """

    def __init__(self, fault: str, pause_s: float = 0.0):
        super().__init__(fault)
        self.pause_s = pause_s


class RefusedError(RequestError):
    """A failed request that would fail again: the address is invalid, or redirects in a loop."""


class Deadline:
    """Time limit that shuts connections down, whatever waits for them.

    Socket timeouts restart with each byte, so a server that sends a byte now and then would hold a client forever.
    """

    def __init__(self, seconds: float):
        self.sockets: list[socket.socket] = []
        self.changed = threading.Condition()
        self.has_ended = self.has_passed = False
        self.seconds, self.until = seconds, time.monotonic() + seconds

    def extend(self, seconds: float) -> None:
        """Set the limit to `seconds` from now."""
        until = time.monotonic() + seconds
        with self.changed:
            if until < self.until:  # a later limit is noticed in time
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
        for connection in self.sockets:
            connection.close()

    def wait(self) -> None:
        """Wait for the end of the exchange or for the time limit."""
        with self.changed:
            while not self.has_ended and (left := self.until - time.monotonic()) > 0:
                self.changed.wait(left)
            self.has_passed = not self.has_ended
            for connection in self.sockets if self.has_passed else ():
                shut_down(connection)

    def watch(self, connection: socket.socket) -> None:
        """Shut this connection down too; a duplicate stays ours when TLS wraps the original."""
        duplicate = socket.socket(fileno=os.dup(connection.fileno()))
        with self.changed:
            self.sockets.append(duplicate)
            if self.has_passed:
                shut_down(duplicate)


def shut_down(connection: socket.socket) -> None:
    """Shut a connection down."""
    with contextlib.suppress(OSError):  # the server was faster
        connection.shutdown(socket.SHUT_RDWR)


class WatchedAdapter(HTTPAdapter):
    """HTTP adapter whose connections a deadline watches."""

    def __init__(self, deadline: Deadline):
        self.deadline = deadline
        super().__init__()

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        """Return a pool whose connections are watched."""
        pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
        deadline, plain = self.deadline, pool.ConnectionCls

        class Watched(plain):  # type: ignore[valid-type, misc]
            def connect(self) -> None:
                super().connect()
                deadline.watch(self.sock)

        pool.ConnectionCls = Watched
        return pool


@contextlib.contextmanager
def open_response(
    url: str, headers: dict[str, str], deadline: Deadline, silence_s: float
) -> Iterator[requests.Response]:
    """Request an address and open the response; read its body with `read_block`.

    Args:
        url: Address; redirects are followed.
        headers: Headers of the request.
        deadline: Limit of the whole exchange; extend it as the body arrives.
        silence_s: Longest time without a byte, in seconds.

    Yields:
        The response, with its body unread.

    Raises:
        RequestError: There is no response.
    """
    # Unencoded: some servers declare a .tgz as an encoding, which the client would decode.
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
    """Close the body of a redirect, which requests would read to its end."""
    if response.is_redirect:
        response.raw.close()


def read_block(response: requests.Response, size: int, deadline: Deadline) -> bytes:
    """Return at most `size` bytes of the body of a `response` before the `deadline`; none at its end.

    Raises:
        RequestError: The connection breaks off.
    """
    with client_errors(deadline):
        return response.raw.read1(size, decode_content=False)


@contextlib.contextmanager
def client_errors(deadline: Deadline) -> Iterator[None]:
    """Report any exception of the HTTP client in the block, without passwords and tokens.

    Raises:
        RequestError: The request failed, or the time limit passed.
        RefusedError: A retry would fail too.
    """
    try:
        yield
    except Exception as error:  # a server can make its client raise anything
        if deadline.has_passed:
            raise RequestError(f"stalled: too slow for {deadline.seconds:g} s") from error
        lasting = isinstance(error, requests.TooManyRedirects | ValueError)  # invalid address or number
        kind = RefusedError if lasting else RequestError
        invalid = isinstance(error, requests.exceptions.InvalidURL)  # it quotes pieces of passwords with slashes
        fault = "the address, or one that it redirects to, is invalid" if invalid else str(error)
        raise kind(without_secrets(f"{type(error).__name__}: {fault}")) from error
    if deadline.has_passed:  # a connection that was shut down looks like the end of a body
        raise RequestError(f"stalled: too slow for {deadline.seconds:g} s")
