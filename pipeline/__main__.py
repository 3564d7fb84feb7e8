"""`python -m pipeline STAGE …`: one stage per workflow rule, each of which can be run by hand."""

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
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[log_handler()])
    try:
        work()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # who reads the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
