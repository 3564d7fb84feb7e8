"""Keep what was measured of finished runs in a folder to be committed, and make a table of all that it holds.

    reprise record weighted/C/multi30k-en-de attention/C1/multi30k-en-de --set scale=small --into measured/readings
    reprise record --into measured/readings --metric bleu_tok_lc         # only the table, anew

writes  <FOLDER>/<paper>-<system>-<dataset>-<scale>-seed<n>.json: settings, digests, commit, cost, losses and scores;
            no weights, no text, no name or folder of a machine. Seeds may come one by one, from several machines
        <FOLDER>/table.csv and .md: a row a system, means over seeds and their deviations
"""

import argparse
import logging
from pathlib import Path

from pipeline.metrics import metric_named
from pipeline.papers.arguments import add_settings_argument
from pipeline.papers.settings import parse_settings
from pipeline.report.markup import grid, write_twins
from reprise.kept import KeptRun, keep, kept_in, metrics_shown, table_rows, test_sets
from reprise.named_run import find_run

log = logging.getLogger(__name__)
NOTES = """\
Dev loss in nats a symbol. Scores of one seed have their 95 % interval over sentences; means of several the standard
deviation between trainings (±). Fewer than three seeds decide nothing. A system whose losses fell by 0.5 % or more on
average over the last fifth of its updates is not at its plateau."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="*", metavar="RUN", help="paper/system/dataset/seed, or a run's folder")
    parser.add_argument(
        "--into", type=Path, required=True, metavar="FOLDER", help="folder of the records and the table"
    )
    parser.add_argument(
        "--metric",
        action="append",
        default=[],
        help="shown in the table; may be given again (default: those it has, else the usual ones)",
    )
    add_settings_argument(parser)


def run(args: argparse.Namespace) -> None:
    for metric in args.metric:
        metric_named(metric)
    for name in args.runs:
        found = find_run(name, parse_settings(args.set))
        log.info("%s", keep(KeptRun.of(found.folder, found.spec), args.into))
    runs = kept_in(args.into)
    rows = table_rows(runs, args.metric or metrics_shown(args.into / "table.csv", runs))
    tested = "\n".join(f"- {one}" for one in test_sets(runs))
    table = grid(list(rows[0]), [list(row.values()) for row in rows])
    write_twins(args.into / "table.csv", rows, f"{table}\n\n{NOTES}\n\n{tested}\n")
    log.info("%s: %d runs of %d systems", args.into / "table.md", len(runs), len(rows))
