"""`python -m pipeline STAGE …`: one stage per workflow rule, each of which can be run by hand."""

import io
import logging
import os
import sys
from collections.abc import Callable

from pipeline.errors import UserError
from pipeline.stages import perform


def log_handler() -> logging.Handler:
    """Coloured on a terminal, plain lines in a log."""
    if sys.stderr.isatty():
        from rich.console import Console  # only where there is somebody to see it: 0.1 s
        from rich.logging import RichHandler

        return RichHandler(console=Console(stderr=True), show_path=False, show_level=False, log_time_format="%H:%M:%S")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    return handler


def main(argv: list[str] | None = None) -> int:
    """A stage; the exit status: 0, or 1 after one line that says what is wrong, or 2 where the arguments are."""
    return status_of(lambda: perform(sys.argv[1:] if argv is None else argv))


def status_of(work: Callable[[], None]) -> int:
    """Of a program that does `work`."""
    try:
        prepare()
        work()
        sys.stdout.flush()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if error.filename is None:  # of the output, which Python would else try to write once more
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # who reads the output has seen enough
            return 0
        print(f"error: {error.filename or 'the output'}: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def prepare() -> None:
    """What every program here needs of its surroundings. Raises UserError where nobody could hear it."""
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")  # closed: nobody wants the log
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[log_handler()])
    if sys.stdout is None:
        raise UserError("standard output is closed; where nobody wants it, write `> /dev/null`")
    for stream in (sys.stdout, sys.stderr):  # text is UTF-8 whatever the locale says
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=stream.errors)
    if (
        "OMP_WAIT_POLICY" not in os.environ
    ):  # read as torch is loaded: its threads else spin where others need the cores
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


if __name__ == "__main__":
    sys.exit(main())
