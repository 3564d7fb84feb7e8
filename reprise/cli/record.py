"""The command `record`: write records of finished runs, to be committed, and a table over seeds."""

import logging
from pathlib import Path
from typing import Annotated

from pipeline.core.command_line import Argument
from pipeline.metrics import metric_named
from pipeline.papers.project import Settings
from pipeline.papers.settings import parse_settings
from pipeline.report.markup import grid, write_twins
from reprise.find_runs import find_run
from reprise.run_records import RunRecord, describe_test_sets, read_records, shown_metrics, table_rows

log = logging.getLogger(__name__)
NOTES = """\
Dev loss in nats a symbol. Scores of one seed have their 95 % interval over sentences; means of several the standard
deviation between trainings (±). Fewer than three seeds decide nothing. A system whose losses fell by 0.5 % or more on
average over the last fifth of its updates is not at its plateau."""


def record(
    runs: Annotated[tuple[str, ...], Argument(metavar="RUN")] = (),
    *,
    into: Annotated[Path, Argument(metavar="FOLDER")],
    metric: Annotated[tuple[str, ...], Argument(repeated=True)] = (),
    settings: Settings = (),
) -> None:
    """Keep the results of finished runs in a folder, with a table over seeds.

        reprise record weighted/C/multi30k-en-de attention/C1/multi30k-en-de --set scale=small --into measured/readings
        reprise record --into measured/readings --metric bleu_tok_lc         # rewrite the table only

    writes  <FOLDER>/<paper>-<system>-<dataset>-<scale>-seed<n>.json: settings, digests, commit, cost, losses and
                scores; no weights, no text, no name or folder of a machine. Seeds may come one by one, from several
                machines
            <FOLDER>/table.csv and .md: one row per system, means over seeds and their standard deviations

    Commit the folder to keep it.

    Args:
        runs: Runs to record: paper/system/dataset/seed, or a run's folder.
        into: Folder of the records and the table.
        metric: Metric of the table. May be given several times; by default those that it has, else the usual ones.
        settings: Override a key of config.yaml. May be given several times.
    """
    for name in metric:
        metric_named(name)
    for name in runs:
        found = find_run(name, parse_settings(settings))
        log.info("%s", RunRecord.of(found.folder, found.spec).store(into))
    records = read_records(into)
    rows = table_rows(records, [*metric] or shown_metrics(into / "table.csv", records))
    tested = "\n".join(f"- {test_set}" for test_set in describe_test_sets(records))
    table = grid(list(rows[0]), [list(row.values()) for row in rows])
    write_twins(into / "table.csv", rows, f"{table}\n\n{NOTES}\n\n{tested}\n")
    log.info("%s: %d runs of %d systems", into / "table.md", len(records), len(rows))
