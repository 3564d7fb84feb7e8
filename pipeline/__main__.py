"""`python -m pipeline STAGE …`: one stage per workflow rule, each of which can be run by hand."""

import logging
import sys

from pipeline.errors import UserError
from pipeline.stages import parse


def main(argv: list[str] | None = None) -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    try:
        args = parse(sys.argv[1:] if argv is None else argv)  # loads the stage, and the architectures with it
        args.stage_module.run(args)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
