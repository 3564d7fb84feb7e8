"""Reprise: the pipeline from raw data to the printed tables of papers. Does not import Snakemake."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - it may run outside of the environment
    sys.exit("error: Python 3.11 or newer is needed; run `make env`, then `source .venv/bin/activate`")
