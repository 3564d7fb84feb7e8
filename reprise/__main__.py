"""`reprise COMMAND …`, or `python -m reprise COMMAND …`: for those who use what was trained."""

import gc
import sys

from pipeline.__main__ import status_of
from pipeline.stages import parse
from reprise.cli import ABOUT, COMMANDS


def main(argv: list[str] | None = None) -> int:
    """The exit status: 0, or 1 after one line that says what is wrong, or 2 where the arguments are."""

    def command() -> None:
        args = parse(sys.argv[1:] if argv is None else argv, COMMANDS, "reprise", ABOUT)
        if argv is None:
            gc.freeze()  # what was loaded stays: a search for garbage need not look through all of torch
        args.stage_module.run(args)

    return status_of(command)


if __name__ == "__main__":
    sys.exit(main())
