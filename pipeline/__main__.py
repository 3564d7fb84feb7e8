"""`python -m pipeline COMMAND …`: the commands that the rules run, each of which you can run by hand."""

import gc
import io
import logging
import os
import re
import sys
import traceback
from collections.abc import Callable

from pipeline.core.errors import ENTER_ENVIRONMENT, UserError, one_line, printable_lines
from pipeline.core.program import Program
from pipeline.stages import PIPELINE


def log_handler() -> logging.Handler:
    """Return a coloured handler for a terminal, or one that writes plain lines."""
    if sys.stderr.isatty():
        from rich.console import Console  # 0.1 s, needed on a terminal only
        from rich.logging import RichHandler

        return RichHandler(console=Console(stderr=True), show_path=False, show_level=False, log_time_format="%H:%M:%S")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    return handler


def as_lines(record: logging.LogRecord) -> bool:
    """Escape names and server messages in a record, so that they cannot move a terminal's cursor."""
    record.msg, record.args = printable_lines(record.getMessage()), None
    return True


def main(argv: list[str] | None = None, program: Program = PIPELINE) -> int:
    """Run a command.

    Args:
        argv: Command and arguments; by default those of this process.
        program: Table of the commands.

    Returns:
        The exit status: 0; 1 after one line that says what is wrong; 130 after Ctrl-C.

    Raises:
        SystemExit: The arguments are wrong (2), or a signal stopped the command.
    """

    def work() -> None:
        args = program.parse(sys.argv[1:] if argv is None else argv)
        if argv is None:
            gc.freeze()  # loaded modules stay, so garbage collection may skip them
        program.run(args)

    return status_of(work)


def status_of(work: Callable[[], None]) -> int:
    """Run `work` and return the process exit status.

    Errors of the system and of the user are one line. Faults of this program have a traceback.

    Returns:
        0; 1 after one line that says what is wrong; 130 after Ctrl-C.

    Raises:
        ModuleNotFoundError: A module of this program is missing.
        OSError: It is not an error of the system.
        UnicodeEncodeError: It is no name with bytes that are not UTF-8.
    """
    try:
        prepare()
        work()
        sys.stdout.flush()
    except UserError as error:
        print(f"error: {printable_lines(str(error))}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "pipeline", "reprise"):
            raise
        print(f"error: Python package {package!r} is missing; {ENTER_ENVIRONMENT}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader closed the pipe
        forget_output()
    except OSError as error:
        forget_output()
        if error.errno is None:
            raise
        place = error.filename2 or error.filename or place_of(traceback.extract_tb(error.__traceback__)[-1])
        print(f"error: {one_line(str(place))}: {error.strerror}", file=sys.stderr)
        return 1
    except UnicodeEncodeError as error:
        if not re.search("[\ud800-\udfff]", error.object):
            raise
        print(f"error: {one_line(error.object, 200)}: is not UTF-8; rename it, or write it in UTF-8", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def place_of(failed: traceback.FrameSummary) -> str:
    """Name what a line of code read or wrote when it failed, by that line: an error of writing names no file."""
    if re.match(r"print\(|sys\.stdout\.", failed.line or ""):
        return "standard output"
    return f"what {failed.filename}, line {failed.lineno}, reads or writes"


def prepare() -> None:
    """Set up logging, standard streams and the threads of OpenMP.

    Raises:
        UserError: Standard output is closed.
    """
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")  # stderr is closed
    handler = log_handler()
    handler.addFilter(as_lines)
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[handler])
    if sys.stdout is None:
        raise UserError("standard output is closed; redirect it with `> /dev/null`")
    # UTF-8 in any locale. A file name that is not UTF-8 is written unchanged, and escaped in errors.
    for stream, faults in ((sys.stdout, "surrogateescape"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=faults)
    if "OMP_WAIT_POLICY" not in os.environ:  # before torch: its threads would spin on cores that others need
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def forget_output() -> None:
    """Discard output that cannot be written, which Python would write once more at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
