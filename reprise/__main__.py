"""Entry point of `reprise COMMAND …` and `python -m reprise COMMAND …`."""

import sys

from pipeline.__main__ import main as run_program
from reprise.cli import REPRISE


def main(argv: list[str] | None = None) -> int:
    """Run a command of `reprise`, and return the exit status (see `pipeline.__main__.main`)."""
    return run_program(argv, REPRISE)


if __name__ == "__main__":
    sys.exit(main())
