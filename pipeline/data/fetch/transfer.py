"""Download of one file from one address, robust against anything that happens on the way.

Received bytes are kept in `<file>.part`, so a broken connection or a killed process costs one more request for the
rest. The file gets its name only after its checksum is verified. An address that does not respond, stalls or breaks
off is retried after growing pauses. An address with another file, or none, is not. Libraries such as pooch verify files
too, but restart from zero after every break.
"""

import contextlib
import hashlib
import logging
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import requests
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from pipeline.core.disk import format_bytes, require_space
from pipeline.core.errors import UserError, without_secrets
from pipeline.core.files import acquire_lock, sync_folder, write_errors
from pipeline.data.fetch.web import ANSWER_S, SILENCE_S, Deadline, RefusedError, RequestError, open_response, read_block

log = logging.getLogger(__name__)

ATTEMPTS = 4  # consecutive ones without progress
PROGRESS_BYTES = 1 << 20  # an attempt that receives this much resets the count
FRESH_STARTS = 2  # complete files with a wrong checksum from one address; the first may mix several addresses
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
SLOWEST_BYTES, SLOWEST_S = 10_000, 60.0  # less than this in this time is a stall
LINE_EVERY_S = 5.0
BLOCK_BYTES = 1 << 18
RETRIED_STATUSES = {408, 425, 429}


class DownloadError(Exception):
    """An address that did not yield the file; the next one is tried."""


def pause_before(state: RetryCallState) -> float:
    """Return the seconds to wait: each pause doubles, and is at least as long as the server asks for."""
    error = state.outcome.exception() if state.outcome else None
    growing = wait_exponential(FIRST_PAUSE_S, max=LONGEST_PAUSE_S)(state)
    return min(max(growing, getattr(error, "pause_s", 0.0)), LONGEST_PAUSE_S)


def fetch_url(url: str, target: Path, known_hash: str | None, expected_bytes: int | None = None) -> Path:
    """Download `url` to `target`, which appears complete and verified, or not at all.

    Args:
        url: Address of the file.
        target: Path of the complete file.
        known_hash: Checksum as `sha256:…`; None leaves verification to the caller, and nothing is resumed.
        expected_bytes: Size of the file; None if unknown.

    Returns:
        `target`.

    Raises:
        DownloadError: This address does not yield the file.
        UserError: The disk is full, not writable, or without file locks.
    """
    part = part_of(target)
    with write_errors(target), locked_part_file(part) as file:
        if target.exists() and mismatch(target, known_hash) is None:  # another process was faster
            part.unlink()
            return target
        if known_hash is None:
            file.truncate(0)
        Transfer(url, file, known_hash, expected_bytes).complete()
        os.fsync(file.fileno())
        os.replace(part, target)
        sync_folder(target.parent)
    return target


def part_of(target: Path) -> Path:
    """Return the file that holds the bytes of `target` received so far."""
    return target.with_name(f"{target.name}.part")


def received_bytes(target: Path) -> int:
    """Return the number of bytes of `target` that an interrupted download left."""
    part = part_of(target)
    return part.stat().st_size if part.exists() else 0


@contextlib.contextmanager
def locked_part_file(part: Path) -> Iterator[IO[bytes]]:
    """Open `part` at its end and lock it, so that a second job for the same file waits for the first."""
    part.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with open(part, "ab") as file:
            if not acquire_lock(file.fileno(), blocking=False):
                log.info("another process is fetching %s; waiting for it", part.name.removesuffix(".part"))
                acquire_lock(file.fileno())
            if not is_same(file, part):  # the previous process finished and renamed the file
                continue
            try:
                yield file
            finally:
                if is_same(file, part) and not part.stat().st_size:
                    part.unlink()
            return


def is_same(file: IO[bytes], path: Path) -> bool:
    """Return whether an open `file` still has the `path` that it was opened with."""
    return path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat())


def mismatch(path: Path, known_hash: str | None) -> str | None:
    """Return what is wrong with the checksum of `path`, or None; `known_hash` is `sha256:…`, None accepts anything."""
    if known_hash is None:
        return None
    algorithm, _, expected = known_hash.partition(":")
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, algorithm).hexdigest()
    return None if found == expected else f"{algorithm} expected {expected}, got {found}"


class Transfer:
    """Transfer from one address to the end of one open file."""

    def __init__(self, url: str, file: IO[bytes], known_hash: str | None, expected_bytes: int | None):
        self.url, self.file = url, file
        self.known_hash, self.expected = known_hash, expected_bytes
        self.shown = without_secrets(url)

    def complete(self) -> None:
        """Fill the file until its checksum is right.

        Raises:
            DownloadError: The address does not yield the file.
        """
        for start in range(FRESH_STARTS):
            self.fetch_all()
            self.file.flush()
            fault = mismatch(Path(self.file.name), self.known_hash)
            if fault is None:
                return
            found = self.done
            self.file.truncate(0)
            fault += f" ({found} bytes" + (f", expected {self.expected})" if self.expected else ")")
            log.info("%s: %s (file %d of %d)", self.shown, fault, start + 1, FRESH_STARTS)
        raise DownloadError(f"{self.shown}: {fault}")

    def fetch_all(self) -> None:
        """Request bytes until all have arrived.

        Raises:
            DownloadError: Several consecutive attempts made little progress.
        """
        retry = Retrying(
            sleep=time.sleep,
            stop=stop_after_attempt(ATTEMPTS),
            wait=pause_before,
            retry=retry_if_exception_type(RequestError),
            before_sleep=self.log_attempt,
            reraise=True,
        )
        try:
            while not retry(self.attempt):
                time.sleep(FIRST_PAUSE_S)
        except RequestError as error:
            raise DownloadError(f"{self.shown}: {error}") from error
        except ValueError as error:  # an invalid number
            raise DownloadError(f"{self.shown}: {without_secrets(str(error))}") from error

    def log_attempt(self, state: RetryCallState) -> None:
        """Log a failed attempt."""
        error = state.outcome.exception() if state.outcome else None
        log.info("%s: %s (attempt %d of %d)", self.shown, error, state.attempt_number, ATTEMPTS)

    def attempt(self) -> bool:
        """Return True if one more request fetched all bytes, False after an interruption late enough to be progress.

        Raises:
            RequestError: The attempt made little progress; a retry is worth while.
            DownloadError: The address does not have the file.
        """
        before = self.done
        try:
            self.request_rest()
            return True
        except RefusedError as error:
            raise DownloadError(f"{self.shown}: {error}") from error
        except RequestError as error:
            if self.done - before < PROGRESS_BYTES:
                raise
            log.info("%s: %s", self.shown, error)
            return False

    @property
    def done(self) -> int:
        """Number of bytes received so far."""
        return self.file.seek(0, os.SEEK_END)

    def request_rest(self) -> None:
        """Request the missing bytes.

        Raises:
            DownloadError: The address does not have the file.
            RequestError: The file was too long and is empty now, or the body is incomplete, stalls or breaks off.
        """
        offset = self.done
        if self.expected is not None and offset >= self.expected:
            if offset > self.expected:
                self.file.truncate(0)
                raise RequestError(f"had {offset} bytes, expected {self.expected}; restarting from zero")
            return
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        with Deadline(ANSWER_S) as deadline, open_response(self.url, headers, deadline, SILENCE_S) as response:
            total = self.check_response(response, offset)
            self.check_space_for(total)
            self.receive(response, total, deadline)

    def check_space_for(self, total: int | None) -> None:
        """Check that the disk has room for the rest.

        Raises:
            UserError: It has not.
            DownloadError: It has not, but only the server says that the file is so large.
        """
        try:
            require_space(Path(self.file.name).parent, (total or 0) - self.done, f"the rest of {self.file.name}")
        except UserError as error:
            if self.expected is None:
                raise DownloadError(f"{self.shown}: {error}") from error
            raise

    def check_response(self, response: requests.Response, offset: int) -> int | None:
        """Prepare the file for the content of a response.

        Args:
            response: Head of the response.
            offset: Number of bytes received so far, from which the request asked to continue.

        Returns:
            Size of the whole file; None if the server does not say.

        Raises:
            DownloadError: The response is an error, or of another file.
            RequestError: A retry is worth while.
        """
        status = response.status_code
        if status >= 500 or status in RETRIED_STATUSES:
            wait = response.headers.get("Retry-After", "")
            raise RequestError(f"status {status}", float(wait) if wait.isdecimal() else 0.0)
        if offset and status == 416:
            self.file.truncate(0)
            raise RequestError(f"has nothing after {offset} bytes; restarting from zero")
        if status not in (200, 206):
            raise DownloadError(f"{self.shown}: status {status} {response.reason}")
        begin, total = self.content_range(response)
        if is_web_page(response) and (total is None or self.known_hash is None):  # received bytes of the file stay
            raise DownloadError(f"{self.shown}: sends a web page instead of the file")
        if self.expected is not None and total not in (None, self.expected):
            raise DownloadError(f"{self.shown}: has {total} bytes, expected {self.expected}: another file")
        if begin != offset:
            self.file.truncate(0)
            if begin:
                raise RequestError(f"continues at byte {begin} instead of {offset}; restarting from zero")
            log.info("%s: can't resume at byte %d: restarting from zero", self.shown, offset)
        elif offset:
            log.info("%s: resuming after %s", self.shown, format_bytes(offset))
        return total

    def content_range(self, response: requests.Response) -> tuple[int, int | None]:
        """Return the first byte of a response, and the size of the whole or None.

        Raises:
            RequestError: The response is a range without its position.
        """
        if response.status_code == 206:
            found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
            if not found:
                self.file.truncate(0)
                raise RequestError("sends a range without naming it; restarting from zero")
            return int(found[1]), None if found[2] == "*" else int(found[2])
        length = response.headers.get("Content-Length", "")
        return 0, int(length) if length.isdecimal() else None

    def receive(self, response: requests.Response, total: int | None, deadline: Deadline) -> None:
        """Append the body of a response.

        Args:
            response: Response, whose body is read here.
            total: Size of the whole file; None if the server does not say.
            deadline: Limit of the exchange, extended as bytes arrive.

        Raises:
            DownloadError: The body is longer than expected.
            RequestError: The body is incomplete, stalls or breaks off.
        """
        limit = self.expected or total
        done = first = extended = self.done
        start = logged = time.monotonic()
        deadline.extend(SLOWEST_S)
        while block := read_block(response, BLOCK_BYTES, deadline):
            self.file.write(block)
            done += len(block)
            now = time.monotonic()
            if limit is not None and done > limit:
                self.file.truncate(0)
                raise DownloadError(f"{self.shown}: sends more than the {limit} bytes expected: another file")
            if done - extended >= SLOWEST_BYTES:
                deadline.extend(SLOWEST_S)
                extended = done
            if now - logged > LINE_EVERY_S:
                logged = now
                log.info("%s: %s", self.shown, progress(first, done, limit, now - start))
        if limit is not None and done < limit:
            raise RequestError(f"broke off after {done} of {limit} bytes")
        log.info("%s: %s", self.shown, progress(first, done, limit, time.monotonic() - start))


def is_web_page(response: requests.Response) -> bool:
    """Return whether a `response` says that it is a web page, which no corpus is: some servers send errors as such."""
    return response.headers.get("Content-Type", "").lower().startswith("text/html")


def progress(first: int, done: int, limit: int | None, seconds: float) -> str:
    """Return in one line how far a file is after some `seconds`: bytes `first`, `done` and `limit`, and the rate."""
    rate = (done - first) / max(seconds, 1e-3)
    text = (
        format_bytes(done)
        + (f" of {format_bytes(limit)} ({100 * done // limit} %)" if limit else "")
        + f", {rate / 1e6:,.1f} MB/s"
    )
    return text + (f", {(limit - done) / rate:,.0f} s left" if limit and rate and done < limit else "")
